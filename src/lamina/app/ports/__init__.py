"""What the use cases need from the world, as contracts, and the values that go through them."""
