"""What changes a person's sessions beyond appending: planned, recorded, applied, and undone where that is asked."""
