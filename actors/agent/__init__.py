"""Sessions: what one keeps, what its turn decides, what its loop does."""
