"""Operations as pure values: how they are stored, what they make of a manifest, and what may follow what."""
