"""The numbers by which the controller judges, each with the reason for it. Bytes, seconds, shares."""

from __future__ import annotations

FIRST_RATE = 500_000.0
START_SHARE = 2.0
"""A start ends at so many targets: less would end it at the small queue that another transfer of ours keeps."""

HELD_BACK = 4.0
STILL_GROWS = 1.1
NO_LONGER = 3
"""A start ends, too, when so many times of what arrives may be sent, and what arrives has not grown for so many steps:
lost packets alone hold the window back for one or two."""

FLOOR_SHARE = 0.02
LEAST_FLOOR = 4_000.0
MOST_FLOOR = 48_000.0
"""The trickle, in bytes a second: enough for some sixteen round trips in a second, too little to be felt."""

STEP_S = 0.1
"""The shortest time between two steps of a fast start, however short the round trip."""

RENO_RTT_S = 0.03
"""Shorter round trips count as long as this: Reno's increase on them would be a multiple of the link in each second."""

LONG_RTT_S = 0.05
LONG_RISE = 0.06
"""On longer paths Reno takes minutes to rise: there we rise as on this one, by at most so much of the link in a second.
Otherwise two transfers would not become equal within the hour; a queue that this makes is seen while it is short."""

GAIN = 0.5
MOST_INCREASE = 0.5
MOST_OF_LINK = 0.15
"""The rate rises by half of Reno's increase, and at most by half of itself and so much of the link in a second."""

SEVERE = 3.0
"""A delay of so many targets is no slip of our own rate: it is halved at once."""

LONG_S = 0.03
FAST_LINK = 3_000_000.0
OVERRUN = 1.25
OVERRUN_OF_OWN = 3.0
"""On a path of at least this length, and of enough bytes a second for a good look, a queue that grows by so many
targets, and times of what we could have made, between two looks is another flow's slow start. Left at once, before that
flow takes our queue for the end of the link; on a shorter path a slow start is over before any answer could help."""

AT_ONCE = 2
MOST_SLACK_S = 0.04
"""The kernel sends so many packets at once, and the receiver confirms every second one. After a loss it confirms the
first of two with the last of the two before: that one has waited as long as these two take, and at most this long."""

LOSS = 0.015
LEAST_LOST = 8
"""Packets lost in a span: above what a long line loses by chance, a queue too short to show a delay is full."""

FEW_LOST = 3
FEW = 0.003
USUAL_S = 5.0
ENOUGH_SENT = 50
LOSSY = 0.001
"""While we rise where another flow was, less is enough, unless that is usual on this path: what was lost over this
time, of spans with enough packets to judge by. A path that loses more than this share by chance is judged by chance."""

BEGIN_ROUNDS = 12
MORE_WARINESS = 1.5
MOST_WARINESS = 4.0
"""In so many round trips a slow start has filled the link: if no queue has shown then, there was none. A busy process
or another transfer of ours has looked like one, and the next must look so many times more like one."""

LEAST_HOLD_S = 1.0
MOST_HOLD_S = 10.0
TRIED_S = 4.0
"""A return that is undone within this time was too early: the next one waits twice as long."""

CLAIM_FIRST = 0.02
CLAIM_S = 0.002
CLAIM_CUT = 0.8
MOST_PACE = 2.0
PACE_S = 4.0
"""A return after another flow begins at a share of the link and rises so that the queue is about this long when it is
seen; faster when it has risen undisturbed for some time. Where a queue shows, it keeps so much of what it has."""

SLOW_SHARE = 0.2
SLOW_EVERY = 30.0
LEAST_BETWEEN_S = 10.0
"""A slow-down to a fifth of the rate, at most a thirtieth of the time: it costs less than a twentieth of the link."""

GENTLE = 0.5
"""From this share of the target on a rate is lowered a little: so that another transfer of ours sees a free link."""

ALONE = 0.8
ALONE_CUT = 0.05
LEAST_CUT = 0.01
CUT_OF_SHARE = 0.15
"""How little: a twentieth by a transfer that has the link, and by those that share it the more the more they have, so
that they become equal soon."""

FALL = 0.93
"""If less than this share of what we had arrives when a queue shows, another flow grows at our cost."""

PEAK_S = 4.0
LINK_S = 600.0
"""How long the highest rates that arrived count: as what may be sent now, and as what the link can carry."""

QUIET_S = 3.0
"""After at least so long without a queue, a rate that was given up is tried again."""
