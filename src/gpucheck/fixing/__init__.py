"""Carries out fixes: what may be run here, what it changes, the way back, and the way on.

1. ``place`` says where the packages of the target are, and whether this user may change them.
2. ``commands`` says which commands may be run at all, by the exact form of their words.
3. ``plan`` takes the first such fix of each finding; ``projects`` knows what undoes it later.
4. ``journal`` is the file that survives this process, ``state`` the copy of what is replaced.
5. ``carrying_out`` runs the steps; ``words`` says all of it.
"""
