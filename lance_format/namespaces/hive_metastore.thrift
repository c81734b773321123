// What this library asks of a Hive metastore: the part of its interface that releases 2 to 4 have in common, as they
// number it. Fields that are left out are optional there; readers skip what they do not know.

enum PrincipalType {
  USER = 1,
  ROLE = 2,
  GROUP = 3,
}

struct FieldSchema {
  1: string name,
  2: string type,
  3: string comment,
}

struct Database {
  1: string name,
  2: string description,
  3: string locationUri,
  4: map<string, string> parameters,
  6: optional string ownerName,
  7: optional PrincipalType ownerType,
}

struct SerDeInfo {
  1: string name,
  2: string serializationLib,
  3: map<string, string> parameters,
}

struct Order {
  1: string col,
  2: i32 order,
}

struct StorageDescriptor {
  1: list<FieldSchema> cols,
  2: string location,
  3: string inputFormat,
  4: string outputFormat,
  5: bool compressed,
  6: i32 numBuckets,
  7: SerDeInfo serdeInfo,
  8: list<string> bucketCols,
  9: list<Order> sortCols,
  10: map<string, string> parameters,
}

struct Table {
  1: string tableName,
  2: string dbName,
  3: string owner,
  4: i32 createTime,
  5: i32 lastAccessTime,
  6: i32 retention,
  7: StorageDescriptor sd,
  8: list<FieldSchema> partitionKeys,
  9: map<string, string> parameters,
  10: string viewOriginalText,
  11: string viewExpandedText,
  12: string tableType,
  17: optional string catName,
  18: optional PrincipalType ownerType,
}

struct GetTableRequest {
  1: required string dbName,
  2: required string tblName,
}

struct GetTableResult {
  1: required Table table,
}

struct GetTablesRequest {
  1: required string dbName,
  2: optional list<string> tblNames,
}

struct GetTablesResult {
  1: required list<Table> tables,
}

exception MetaException {
  1: string message,
}

exception NoSuchObjectException {
  1: string message,
}

exception AlreadyExistsException {
  1: string message,
}

exception InvalidObjectException {
  1: string message,
}

exception InvalidOperationException {
  1: string message,
}

exception UnknownDBException {
  1: string message,
}

service ThriftHiveMetastore {
  list<string> set_ugi(1: string user_name, 2: list<string> group_names) throws (1: MetaException o1),

  list<string> get_all_databases() throws (1: MetaException o1),

  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2),

  void create_database(1: Database database)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3),

  void drop_database(1: string name, 2: bool deleteData, 3: bool cascade)
      throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3),

  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1),

  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2),

  GetTablesResult get_table_objects_by_name_req(1: GetTablesRequest req)
      throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3),

  void create_table(1: Table tbl)
      throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
              4: NoSuchObjectException o4),

  void alter_table(1: string dbname, 2: string tbl_name, 3: Table new_tbl)
      throws (1: InvalidOperationException o1, 2: MetaException o2),

  void drop_table(1: string dbname, 2: string name, 3: bool deleteData)
      throws (1: NoSuchObjectException o1, 2: MetaException o3),
}
