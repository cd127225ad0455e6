"""What a model needs when it runs: number formats now."""
