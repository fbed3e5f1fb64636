"""Files to protobuf objects and back, whatever is wrong with them."""
