"""Private algorithms from other papers, one short file each: declared as in their papers, and judged.

Imports: privcheck and `papers`; files may share a declaration. Promises: no file registers an agent, and a source that
could not be looked up says "as described in".
"""
