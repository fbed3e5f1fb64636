"""Read files to protobuf objects and write them back, robust against any damage."""
