"""What turns problems into batches: processor, output symbols, collators, trees."""
