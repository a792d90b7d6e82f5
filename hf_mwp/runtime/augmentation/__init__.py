"""New training problems made from existing ones, with exact equations."""
