"""Two boxes, one conversation: the user's tests on one side, the candidate on the other, and a pipe each way.

Values cross as tagged JSON and come out as exactly the built-in type they were; everything else stays where it is and
is represented by a mirror. Both boxes see these files, so there is no secret in them. The standard library only.
"""
