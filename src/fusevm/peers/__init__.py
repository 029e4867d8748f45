"""Other EVMs beside ours, behind one small protocol, so that they can be compared and timed on the same work."""
