"""What a node was called by earlier forms of identity.

A file per form, kept as it was when that form was in use; `former.py` knows them by their numbers. The form in use is
`identity/fingerprint.py`.
"""
