"""Trust in project folders: effects of opening a folder, and the user's decisions."""
