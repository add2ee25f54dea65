"""The packages that `privcheck new NAME --kind KIND` writes, whose tests and checks pass as they are written.

A template in a kind's folder comes before the one beside this file, which several kinds share.
"""
