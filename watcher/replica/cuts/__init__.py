"""What is known of a replica, beside its copies: whose it is, its cuts, its proofs."""
