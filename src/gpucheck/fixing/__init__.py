"""Carries out fixes: what may be run here, what it changes, the way back, and the way on.

1. ``permitted`` says where the packages of the target are, whether this user may change them, and
   which commands may be run at all, by the exact form of their words.
2. ``plan`` takes the first such fix of each finding, and knows what undoes it later.
3. ``journal`` is the file that survives this process, with the copy of what is replaced.
4. ``carrying_out`` runs the steps, and says all of it.
"""
