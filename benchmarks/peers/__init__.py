"""Other libraries doing the same work: one file each, loaded only in the process that measures it."""
