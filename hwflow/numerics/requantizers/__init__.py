"""Integer step functions, and the cheapest hardware forms of them."""
