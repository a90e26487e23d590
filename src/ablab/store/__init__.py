"""What a run leaves on the disk, and how it is found again."""
