"""Studies that look for settings: trials instead of arms, then the winner on fresh seeds."""
