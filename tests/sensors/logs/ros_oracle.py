"""Logs that an independent implementation (PyPI: rosbags) wrote, read by takt; what takt makes of them (MCAP is all that
takt writes), read by the package mcap and decoded by rosbags.

usage: ros_oracle.py ROS_ORACLE_TOOL
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy
from mcap.reader import make_reader
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

TOOL = sys.argv[1]
START = 1_700_000_000_000_000_000
COUNT = 30


def messages(store, ros1):
    """Odometry and pictures in turn: topic, type, record time, message, and the line that takt must print."""
    t = store.types
    for i in range(COUNT):
        stamp = START + i * 10_000_000 + 123
        time = t["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
        extra = {"seq": i} if ros1 else {}
        header = t["std_msgs/msg/Header"](stamp=time, frame_id="frame%d" % i, **extra)
        vector, point = t["geometry_msgs/msg/Vector3"], t["geometry_msgs/msg/Point"]
        if i % 2:
            pose = t["geometry_msgs/msg/Pose"](point(i + 0.1, 2.0, 3.0), t["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0))
            twist = t["geometry_msgs/msg/Twist"](vector(1.0, i / 3, 0.0), vector(0.0, 0.0, i / 7))
            message = t["nav_msgs/msg/Odometry"](
                header, "base", t["geometry_msgs/msg/PoseWithCovariance"](pose, numpy.zeros(36)),
                t["geometry_msgs/msg/TwistWithCovariance"](twist, numpy.zeros(36)))
            topic, kind, tail = "/odom", "nav_msgs/Odometry", "%.17g %.17g %.17g" % (i + 0.1, i / 3, i / 7)
        else:
            data = numpy.arange(i * 12, dtype=numpy.uint8)
            message = t["sensor_msgs/msg/Image"](header, 2, 2 * i, "rgb8", 0, 6 * i, data)
            topic, kind, tail = "/image", "sensor_msgs/Image", "%dx2 rgb8 %d" % (2 * i, i * 12)
        record = stamp + 4_000_000
        yield topic, kind, record, message, "%s %s %d %d %s" % (topic, kind, record, stamp, tail)


def check(path, expected):
    out = subprocess.run([TOOL, path], check=True, capture_output=True, text=True).stdout.splitlines()
    assert out == expected, (path, out[:3], expected[:3])


def check_copy(path, ros1):
    """takt's copy of a log in MCAP: types, definitions, stamps and bytes."""
    copy = path.parent / (path.name + ".copy.mcap")
    subprocess.run([TOOL, path, copy], check=True)
    check(copy, expected)
    store = get_typestore(Stores.EMPTY)
    found = []
    with open(copy, "rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        assert len(reader.get_summary().channels) == 2
        for schema, channel, record in reader.iter_messages():
            kind = schema.name if "/msg/" in schema.name else schema.name.replace("/", "/msg/")
            assert channel.message_encoding == ("ros1" if ros1 else "cdr")
            assert schema.encoding == ("ros1msg" if ros1 else "ros2msg"), schema.encoding
            if kind not in store.types:
                store.register(get_types_from_msg(schema.data.decode(), kind))
            message = (store.deserialize_ros1 if ros1 else store.deserialize_cdr)(record.data, kind)
            stamp = message.header.stamp
            line = "%s %s %d %d " % (channel.topic, kind.replace("/msg/", "/"), record.log_time, stamp.sec * 10**9 + stamp.nanosec)
            if channel.topic == "/odom":
                line += "%.17g %.17g %.17g" % (message.pose.pose.position.x, message.twist.twist.linear.y,
                                               message.twist.twist.angular.z)
            else:
                line += "%dx%d %s %d" % (message.width, message.height, message.encoding, len(message.data))
            found.append(line)
    assert found == expected, (path, found[:3], expected[:3])


def check_refused(path, words):
    run = subprocess.run([TOOL, path], capture_output=True, text=True)
    assert run.returncode == 3 and words in run.stderr, (path, run.returncode, run.stderr)


def fill(writer, store, ros1):
    serialize = store.serialize_ros1 if ros1 else store.serialize_cdr
    connections, expected = {}, []
    for topic, kind, record, message, line in messages(store, ros1):
        name = kind.replace("/", "/msg/")
        if topic not in connections:
            connections[topic] = writer.add_connection(topic, name, typestore=store)
        writer.write(connections[topic], record, serialize(message, name))
        expected.append(line)
    return expected


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    ros1 = get_typestore(Stores.ROS1_NOETIC)
    for compression in (None, Writer1.CompressionFormat.BZ2, Writer1.CompressionFormat.LZ4):
        path = root / ("%s.bag" % compression)
        writer = Writer1(path)
        writer.chunk_threshold = 2000
        if compression:
            writer.set_compression(compression)
        with writer:
            expected = fill(writer, ros1, True)
        check(path, expected)
        check_copy(path, True)

    ros2 = get_typestore(Stores.ROS2_HUMBLE)
    variants = [(version, plugin, mode) for version in (8, 9) for plugin in (StoragePlugin.SQLITE3, StoragePlugin.MCAP)
                for mode in (None, CompressionMode.FILE, CompressionMode.MESSAGE)]
    for version, plugin, mode in variants:
        path = root / ("%d-%s-%s" % (version, plugin.name, mode))
        writer = Writer2(path, version=version, storage_plugin=plugin)
        if mode:
            writer.set_compression(mode, CompressionFormat.ZSTD)
        with writer:
            expected = fill(writer, ros2, False)
        if plugin == StoragePlugin.MCAP and mode == CompressionMode.MESSAGE:
            check_refused(path, "packed one by one with zstd")
            continue
        check(path, expected)
        if plugin == StoragePlugin.MCAP or version == 9:  # older databases hold no definitions
            check_copy(path, False)
        (path / "metadata.yaml").unlink()
        check(path, expected)
print("rosbags: all files read, all copies decoded")
