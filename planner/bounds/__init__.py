"""Lower bounds, cheap to dear; each says what it relaxes."""
