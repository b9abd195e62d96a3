"""Values of every type, as servers send them, and what decodes them."""
