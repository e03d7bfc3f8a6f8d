"""The peer: libtorrent as it comes, without routers, trackers or announcements. Runs in an environment of its own.

torrents.py make FOLDER MB
torrents.py seed|leech FOLDER tcp|utp ADDRESS SECONDS [SEED'S ADDRESS]     a leech prints bytes of each 100 ms
"""

from __future__ import annotations

import os
import sys
import time

import libtorrent as lt

role, folder, *rest = sys.argv[1:]
if role == "make":
    os.makedirs(f"{folder}/seed", exist_ok=True)
    with open(f"{folder}/seed/file", "wb") as file:
        for _ in range(int(rest[0])):
            file.write(os.urandom(1_000_000))
    files = lt.file_storage()
    lt.add_files(files, f"{folder}/seed/file")
    torrent = lt.create_torrent(files)
    lt.set_piece_hashes(torrent, f"{folder}/seed")
    with open(f"{folder}/file.torrent", "wb") as file:
        file.write(lt.bencode(torrent.generate()))
    sys.exit()
transport, address, seconds, *other = rest
utp = transport == "utp"
session = lt.session(
    {
        "listen_interfaces": f"{address}:6999",
        "enable_dht": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "mixed_mode_algorithm": 0,
        "enable_outgoing_utp": utp,
        "enable_incoming_utp": utp,
        "enable_outgoing_tcp": not utp,
        "enable_incoming_tcp": not utp,
    }
)
params = lt.add_torrent_params()
params.ti = lt.torrent_info(f"{folder}/file.torrent")
params.save_path = f"{folder}/{role}"
if role == "seed":
    params.flags |= lt.torrent_flags.seed_mode
handle = session.add_torrent(params)
if other:
    time.sleep(0.5)
    handle.connect_peer((other[0], 6999))
until, last, counts = time.monotonic() + float(seconds), 0, []
while (now := time.monotonic()) < until:
    done = handle.status().total_payload_download
    counts.append(f"{int(now / 0.1)}:{done - last}")
    last = done
    if handle.status().is_seeding and role == "leech":
        break
    time.sleep(0.1)
if role == "leech":
    print(" ".join(counts), flush=True)
os._exit(0)
