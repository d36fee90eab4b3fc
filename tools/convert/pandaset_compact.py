#!/usr/bin/env python3
"""Original PandaSet sequence (pandas pickles) -> the compact form that takt-convert-pandaset reads.

usage: pandaset_compact.py SEQUENCE OUT
       pandaset_compact.py --self-test

SEQUENCE is a folder of the published set (001, 002, ...): lidar/NN.pkl.gz, annotations/cuboids/NN.pkl.gz,
camera/front_camera/NN.jpg. C++ should not read pickles: they are programs. Needs python3-pandas.

OUT gets lidar/NN.psl.gz, lidar_poses.csv, cuboids.csv and camera/front_camera, all of the Pandar64 alone. A cloud is gzip of
  "PSL1" | u32 n | f64 first time, s | f64 stamp, s | u32 0 | i16 x[n] y[n] z[n], cm | u16 dt[n], 10 us | u8 intensity[n]
  | u8 class[n], little endian, in the frame of the sweep's pose (x right, y forward, z up)
"""
import csv
import gzip
import json
import math
import pathlib
import shutil
import struct
import sys
import tempfile

import numpy as np
import pandas as pd

POINT_LIMIT_M = 327.0  # of each coordinate: centimetres in 16 bits


def rotation(h):
    """Matrix of a unit quaternion given as {w, x, y, z}."""
    w, x, y, z = h["w"], h["x"], h["y"], h["z"]
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def yaw_of(h):
    r = rotation(h)
    return math.atan2(r[1, 0], r[0, 0])


def to_sweep(points, pose):
    """World -> frame of the sweep."""
    p = pose["position"]
    return (points - np.array([p["x"], p["y"], p["z"]])) @ rotation(pose["heading"])


def inside(points, centre, yaw, dimensions):
    """How many points lie in a box with width along its x and length along its y."""
    d = points - centre
    c, s = math.cos(yaw), math.sin(yaw)
    x, y = c * d[:, 0] + s * d[:, 1], -s * d[:, 0] + c * d[:, 1]
    w, l, h = dimensions
    return int(np.count_nonzero((np.abs(x) <= w / 2) & (np.abs(y) <= l / 2) & (np.abs(d[:, 2]) <= h / 2)))


def cloud_bytes(xyz, times, intensity, classes, stamp):
    n, first = len(xyz), float(times.min()) if len(times) else stamp
    centimetres = np.rint(xyz * 100).astype("<i2")
    dt = np.clip(np.rint((times - first) * 1e5), 0, 65535).astype("<u2")
    body = b"".join(np.ascontiguousarray(centimetres[:, k]).tobytes() for k in range(3))
    body += dt.tobytes() + np.clip(intensity, 0, 255).astype("u1").tobytes() + classes.astype("u1").tobytes()
    return b"PSL1" + struct.pack("<IddI", n, first, stamp, 0) + body


def convert(sequence, out):
    sequence, out = pathlib.Path(sequence), pathlib.Path(out)
    poses = json.loads((sequence / "lidar/poses.json").read_text())
    stamps = json.loads((sequence / "lidar/timestamps.json").read_text())
    clouds = sorted((sequence / "lidar").glob("[0-9][0-9].pkl.gz"))
    if not clouds:
        sys.exit(f"{sequence}: no lidar/00.pkl.gz; give the folder of one sequence of the published set")
    if not len(poses) == len(stamps) >= len(clouds):
        sys.exit(f"{sequence}: {len(clouds)} clouds, {len(poses)} poses, {len(stamps)} stamps")
    (out / "lidar").mkdir(parents=True, exist_ok=True)
    shutil.copytree(sequence / "camera/front_camera", out / "camera/front_camera", dirs_exist_ok=True)

    with open(out / "lidar_poses.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["frame", "t", "x", "y", "z", "qw", "qx", "qy", "qz"])
        for i, (pose, t) in enumerate(zip(poses, stamps)):
            p, h = pose["position"], pose["heading"]
            rows.writerow([i, f"{t:.6f}", p["x"], p["y"], p["z"], h["w"], h["x"], h["y"], h["z"]])

    tracks, dropped, total = {}, 0, 0
    with open(out / "cuboids.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow("frame,t,track,label,motion,stationary,sensor_id,xw,yw,zw,yaw_w,x,y,z,yaw,width,length,height,"
                      "npts_pandar64".split(","))
        for frame, path in enumerate(clouds):
            table = pd.read_pickle(path)
            semantic = sequence / "annotations/semseg" / path.name
            classes = pd.read_pickle(semantic)["class"].to_numpy() if semantic.exists() else np.zeros(len(table))
            pandar64 = (table["d"] == 0).to_numpy()
            xyz = to_sweep(table[["x", "y", "z"]].to_numpy()[pandar64], poses[frame])
            times, intensity = table["t"].to_numpy()[pandar64], table["i"].to_numpy()[pandar64]
            near = (np.abs(xyz) < POINT_LIMIT_M).all(axis=1)
            dropped += int(np.count_nonzero(~near))
            total += len(xyz)
            with gzip.GzipFile(out / "lidar" / f"{frame:02d}.psl.gz", "wb", mtime=0) as cloud:
                cloud.write(cloud_bytes(xyz[near], times[near], intensity[near], classes[pandar64][near], stamps[frame]))

            boxes = sequence / "annotations/cuboids" / path.name
            if not boxes.exists():
                continue
            pose_yaw = yaw_of(poses[frame]["heading"])
            for _, b in pd.read_pickle(boxes).iterrows():
                world = np.array([b["position.x"], b["position.y"], b["position.z"]])
                centre = to_sweep(world[None, :], poses[frame])[0]
                yaw = math.remainder(b["yaw"] - pose_yaw, 2 * math.pi)
                size = (b["dimensions.x"], b["dimensions.y"], b["dimensions.z"])
                track = tracks.setdefault(b["uuid"], len(tracks))
                rows.writerow([frame, f"{stamps[frame]:.6f}", track, b["label"], b.get("attributes.object_motion", ""),
                               int(bool(b["stationary"])), int(b.get("cuboids.sensor_id", -1))] +
                              [f"{v:.3f}" for v in world] + [f"{b['yaw']:.5f}"] + [f"{v:.3f}" for v in centre] +
                              [f"{yaw:.5f}"] + [f"{v:.3f}" for v in size] + [inside(xyz, centre, yaw, size)])
    print(f"{out}: {len(clouds)} sweeps, {total - dropped} points ({dropped} beyond {POINT_LIMIT_M:g} m left out), "
          f"{len(tracks)} tracks")
    print(f"next: takt-convert-pandaset {out} configs/rigs/pandaset.yaml drive.mcap")


def self_test():
    """A sequence of two frames with one box, written as the set is, and read back from the compact form."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in ("lidar", "camera/front_camera", "annotations/cuboids"):
            (root / "in" / name).mkdir(parents=True)
        half = math.sqrt(0.5)
        poses = [{"position": {"x": 10.0 + i, "y": -4.0, "z": 1.0}, "heading": {"w": half, "x": 0, "y": 0, "z": half}}
                 for i in range(2)]
        (root / "in/lidar/poses.json").write_text(json.dumps(poses))
        (root / "in/lidar/timestamps.json").write_text(json.dumps([100.0, 100.1]))
        (root / "in/camera/front_camera/00.jpg").write_bytes(b"picture")
        for i in range(2):
            # In the frame of the sweep: (1, 2, 0) twice; by the other LiDAR; too far.
            world = np.array([[-2, 1, 0], [-2, 1, 0], [-2, 1, 0], [0, 400, 0]]) + [10.0 + i, -4, 1]
            table = pd.DataFrame(world, columns=["x", "y", "z"])
            table["i"], table["t"], table["d"] = [7, 8, 9, 10], [99.95, 100.0, 100.0, 100.0], [0, 0, 1, 0]
            table.to_pickle(root / f"in/lidar/{i:02d}.pkl.gz")
            box = {"uuid": "car", "label": "Car", "yaw": math.pi / 2, "stationary": False, "position.x": 8.0 + i,
                   "position.y": -3.0, "position.z": 1.0, "dimensions.x": 2.0, "dimensions.y": 4.0,
                   "dimensions.z": 1.5, "attributes.object_motion": "Moving", "cuboids.sensor_id": -1}
            pd.DataFrame([box]).to_pickle(root / f"in/annotations/cuboids/{i:02d}.pkl.gz")
        convert(root / "in", root / "out")
        raw = gzip.decompress((root / "out/lidar/01.psl.gz").read_bytes())
        assert raw[:4] == b"PSL1" and struct.unpack_from("<IddI", raw, 4) == (2, 99.95, 100.1, 0)
        assert np.frombuffer(raw, "<i2", 6, 28).tolist() == [100, 100, 200, 200, 0, 0]
        assert np.frombuffer(raw, "<u2", 2, 40).tolist() == [0, 5000] and raw[44:46] == bytes([7, 8])
        assert len(raw) == 28 + 10 * 2
        rows = list(csv.DictReader(open(root / "out/cuboids.csv")))
        assert len(rows) == 2 and rows[1]["frame"] == "1" and rows[1]["track"] == "0" and rows[1]["motion"] == "Moving"
        assert [float(rows[1][k]) for k in ("x", "y", "z", "yaw")] == [1, 2, 0, 0] and rows[1]["npts_pandar64"] == "2"
        assert (root / "out/camera/front_camera/00.jpg").read_bytes() == b"picture"
    print("ok")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) == 3 and not sys.argv[1].startswith("-"):
        convert(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)
