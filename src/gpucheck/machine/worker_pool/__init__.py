"""Workers in the target interpreter: started, listened to, ended in time, and cleaned up.

What a worker is told to do, and what its answers mean, is the business of whoever owns the pool.
"""
