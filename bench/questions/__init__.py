"""Questions that analysts ask, as data, and the parts that ask and judge them."""
