"""Searches for schedules of real components that break what docs/protocol.md promises.

An actor is a thread with the real client; every RPC of it passes a gate, and a scheduler decides
who goes on (``scheduler``, ``gate``). Server, time, locks of the server and the threads that an
actor starts are under its control, so that a schedule is played again from its text
(``in_process``, ``virtual_time``, ``schedule``). ``choosers`` are at random or go through all
schedules with few preemptions. ``scenarios`` say who meets whom, ``judges`` what was lost, doubled,
disordered or wrong. ``mutations`` put faults back: the explorer has to find each.
"""
