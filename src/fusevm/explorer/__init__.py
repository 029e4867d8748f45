"""The explorer: a page that shows what the optimiser did to a contract, its server, and its export as one file."""
