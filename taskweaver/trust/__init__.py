"""Trust in project folders: the effects of opening one, and the user's decisions about them."""
