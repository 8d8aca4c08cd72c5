"""A ticket: what a user pasted, and the cause that it shows.

A text goes one way. Each step imports only from those before it. The messages themselves are in
``gpucheck.log_patterns``; ``intake`` asks its matcher which lines of a long log to keep.

1. ``given`` opens a file or pipe, finds snapshots of gpucheck in it and refuses images and
   archives, ``intake`` makes bounded clean lines of it;
2. ``own_report`` takes a report of gpucheck's own out, ``plain_words`` translates what systems
   print and names errors that are quoted by number; ``intake`` joins broken lines for a second
   reading;
3. ``readers`` read its facts, ``reading`` adds what the tables know;
4. the matcher finds messages; ``exceptions`` are read with their frames, ``failure`` says which of
   them the text is about, and whose code raised it. ``complaints`` finds what people say; with the
   facts and the messages that count it all is a ``reading``;
5. ``circumstances`` says what a text computes with and what is asked of its author; ``claims``
   makes a snapshot of it all, and weighs what it claims;
6. ``judge`` does all this for one input: it has the engine combine the claims, keeps the outcomes
   of checks about which no text says anything, and says what is open;
7. ``batch`` does it for many; ``failure`` says who has to act on each, and ``batch_summary``
   counts them. ``ticket_reply`` answers in the ticket's language.
"""
