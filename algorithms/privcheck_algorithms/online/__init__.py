"""What the tabular online agents share: the stage that they run on, options, public policies of batches.

Imports: privcheck, kernels and privatizers. Promises: an agent gets what is on the billboard and what is public.
"""

from __future__ import annotations
