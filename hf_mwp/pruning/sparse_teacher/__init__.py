"""Which heads and neurons make a teacher hard to learn from (STARK), and the teacher without them."""
