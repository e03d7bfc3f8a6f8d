"""Deciding: releases, scaling, replicas. Events in, commands out; no clock, no socket, no process."""
