"""`LanceTable`: Delta's verbs on Lance tables, from any Spark session, without the planner bridge."""
