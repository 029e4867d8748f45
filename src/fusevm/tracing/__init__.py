"""What happened inside calls: recordings, and what can be made of them."""
