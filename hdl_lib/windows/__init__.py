"""Line buffers, sliding windows, pools."""
