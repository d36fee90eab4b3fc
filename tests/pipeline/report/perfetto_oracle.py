#!/usr/bin/env python3
"""Reads trace.pftrace with Perfetto's own published messages: no unknown field, and what a viewer needs is there.

usage: perfetto_oracle.py FOLDER [FOLDER ...]
Exit code 77 (skipped, for CTest) with a reason when the package perfetto is not installed.
"""
import sys

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError:
    print("skipped: the Python package perfetto is not installed")
    sys.exit(77)
from google.protobuf.unknown_fields import UnknownFieldSet


def unknown(message):
    """Names of messages that hold fields which Perfetto does not know."""
    found = [message.DESCRIPTOR.name] if len(UnknownFieldSet(message)) > 0 else []
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for nested in value if descriptor.is_repeated else [value]:
            found += unknown(nested)
    return found


def check(folder):
    with open(f"{folder}/trace.pftrace", "rb") as file:
        trace = perfetto.Trace.FromString(file.read())
    faults = [f"unknown fields in {name}" for name in sorted(set(unknown(trace)))]
    tracks, depth, flows, ends = {}, {}, set(), set()
    for packet in trace.packet:
        if packet.trusted_packet_sequence_id != 1:
            faults.append("a packet without its sequence")
        if packet.HasField("track_descriptor"):
            t = packet.track_descriptor
            tracks[t.uuid] = t
            if t.child_ordering != t.EXPLICIT:
                faults.append(f"{t.name}: no explicit order")
        if packet.HasField("track_event"):
            e = packet.track_event
            if e.track_uuid not in tracks:
                faults.append("an event on no track")
            if e.type == e.TYPE_SLICE_BEGIN:
                depth[e.track_uuid] = depth.get(e.track_uuid, 0) + 1
                if not e.name:
                    faults.append("a slice without a name")
            elif e.type == e.TYPE_SLICE_END:
                depth[e.track_uuid] -= 1
            elif e.type != e.TYPE_INSTANT:
                faults.append(f"an event of type {e.type}")
            flows.update(e.flow_ids)
            ends.update(e.terminating_flow_ids)
            for note in e.debug_annotations:
                if not note.name:
                    faults.append("a note without a name")
    if any(depth.values()):
        faults.append("a slice is not closed")
    for t in tracks.values():
        if t.parent_uuid and t.parent_uuid not in tracks:
            faults.append(f"{t.name}: no parent")
    if ends - flows:
        faults.append("a flow ends that never began")
    print(f"{folder}: {len(trace.packet)} packets, {len(tracks)} tracks, {len(flows)} flows")
    return [f"{folder}: {fault}" for fault in sorted(set(faults))]


faults = [fault for folder in sys.argv[1:] for fault in check(folder)]
for fault in faults:
    print(fault)
sys.exit(1 if faults else 0)
