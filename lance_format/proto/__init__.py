"""The protobuf messages of the format: our .proto files and the modules generated from them."""
