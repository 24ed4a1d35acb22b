"""The run itself: who begins attempts, how one is carried out, and how stage follows stage."""
