"""Random scenes for `takt simulate`: street layouts, traffic, light and camera settings as a function of one seed.

Families are ways to lay out a street. `TRAINED` ones give training scenes, `HELD_OUT` ones are never trained on, and
held-out scenes of trained families take other seeds: no layout is ever seen twice.

    python3 tools/train/scenes.py FAMILY SEED > configs/scenes/NAME.yaml

prints a scene for the whole rig, three seconds long: a drive to replay.
"""
import math
import random

TRAINED = ("street", "avenue", "country", "yard", "narrow")
HELD_OUT = ("boulevard",)

FRAMES = 8  # pictures of a scene, one second apart: the same place is not learnt over and over

# What the random layouts draw from: (lowest, highest) in metres; `houses`, `trees`: probability of a row per side.
LAYOUTS = {
    "street": dict(lane=(3.0, 3.8), parking=(2.1, 2.6), pavement=(2.0, 4.5), houses=1.0, gap=(0, 3), setback=(0, 1),
                   trees=0.7, tree_spacing=(9, 25), parked=0.75, across=0.1, people=(6, 16)),
    "avenue": dict(lane=(3.4, 5.5), parking=(2.2, 5.5), pavement=(4, 9), houses=0.9, gap=(2, 14), setback=(1, 12),
                   trees=0.9, tree_spacing=(7, 16), parked=0.55, across=0.2, people=(4, 14)),
    "country": dict(lane=(2.9, 3.6), parking=(0.3, 2.5), pavement=(0.8, 6), houses=0.25, gap=(10, 45),
                    setback=(4, 30), trees=0.9, tree_spacing=(6, 45), parked=0.15, across=0.1, people=(0, 5)),
    "yard": dict(lane=(3.2, 4.5), parking=(4.6, 6), pavement=(8, 18), houses=0.6, gap=(4, 25), setback=(2, 20),
                 trees=0.5, tree_spacing=(12, 40), parked=0.8, across=0.8, people=(4, 12)),
    "narrow": dict(lane=(2.5, 3.1), parking=(1.9, 2.3), pavement=(1.0, 2.2), houses=1.0, gap=(0, 1), setback=(0, 0.6),
                   trees=0.2, tree_spacing=(12, 30), parked=0.85, across=0.0, people=(5, 14)),
    "boulevard": dict(lane=(3.5, 4.5), parking=(2.5, 5.2), pavement=(5, 12), houses=0.8, gap=(3, 20), setback=(3, 16),
                      trees=0.8, tree_spacing=(8, 18), parked=0.65, across=0.4, people=(6, 18)),
}


def _colour(rng):
    """Linear reflectance: most vehicles are white, black or grey, the rest has a hue."""
    if rng.random() < 0.55:
        grey = rng.choice([rng.uniform(0.01, 0.06), rng.uniform(0.1, 0.4), rng.uniform(0.5, 0.75)])
        tint = [rng.uniform(0.94, 1.06) for _ in range(3)]
        return [round(min(1.0, grey * t), 3) for t in tint]
    return _hue(rng, rng.uniform(0.4, 1.0), rng.uniform(0.05, 0.6))


def _hue(rng, saturation, value):
    hue = rng.uniform(0, 6)
    wave = [abs((hue + shift) % 6 - 3) - 1 for shift in (0, 4, 2)]
    return [round(value * (1 - saturation + saturation * min(1.0, max(0.0, w))), 3) for w in wave]


def _vehicle(rng, station, offset, heading, speed=0.0, widest=3.0):
    """One vehicle of random type and size that fits a strip `widest` wide."""
    kind = rng.choices(["car", "van", "truck"], [0.72, 0.16, 0.12])[0]
    length, width, height = {
        "car": lambda: (rng.uniform(3.4, 5.0), rng.uniform(1.6, 1.95), rng.uniform(1.35, 1.8)),
        "van": lambda: (rng.uniform(4.6, 6.6), rng.uniform(1.85, 2.15), rng.uniform(1.85, 2.7)),
        "truck": lambda: (rng.uniform(6.0, 11.5), rng.uniform(2.2, 2.55), rng.uniform(2.6, 3.9)),
    }[kind]()
    vehicle = {"type": kind, "colour": _colour(rng), "station_m": round(station + length / 2, 2),
               "offset_m": round(offset, 2), "heading_deg": round((heading + 180) % 360 - 180, 1),
               "length_m": round(length, 2), "width_m": round(min(width, widest), 2), "height_m": round(height, 2)}
    if speed:
        vehicle["speed_mps"] = round(speed, 2)
    return vehicle, length


def _lane(rng, first, last, offset, heading, speed, gap, lane_width):
    """A queue in one lane. Speeds differ by less than the gaps within a scene."""
    vehicles, station = [], first
    while station < last:
        wobble = rng.uniform(-0.15, 0.15) * lane_width
        # Everything in front is at least as fast: nobody drives through anybody.
        own = max(0.0, speed + 0.002 * (station - first) * (1 if heading == 0 else -1)) if speed else 0.0
        vehicle, length = _vehicle(rng, station, offset + wobble, heading + rng.gauss(0, 1), own)
        vehicles.append(vehicle)
        station += length + rng.uniform(*gap)
    return vehicles


def _parked(rng, first, last, offset, strip, share, across):
    """A row of parked vehicles, along the road or across it, with holes."""
    vehicles, station = [], first
    crosswise = rng.random() < across and strip >= 4.5
    side = 90 if offset > 0 else -90
    while station < last:
        if rng.random() > share:
            station += rng.uniform(3, 9)
            continue
        if crosswise:
            heading = side + rng.choice([0, 180]) + rng.gauss(0, 4)
            vehicle, _ = _vehicle(rng, station, offset, heading)
            vehicle["station_m"] = round(station, 2)
            vehicle["length_m"] = round(min(vehicle["length_m"], 5.2), 2)
            step = 2.2 + rng.uniform(0.4, 1.6)
        else:
            heading = (0 if rng.random() < (0.85 if offset < 0 else 0.15) else 180) + rng.gauss(0, 2)
            vehicle, length = _vehicle(rng, station, offset, heading, widest=max(1.7, strip))
            step = length + rng.uniform(0.6, 2.5)
        vehicles.append(vehicle)
        station += step
    return vehicles


def _people(rng, count, first, last, edge, pavement, crossings):
    people = []
    for _ in range(count):
        person = {"colour": _colour(rng), "station_m": round(rng.uniform(first, last), 2),
                  "offset_m": round(rng.choice([-1, 1]) * (edge + rng.uniform(0.4, max(0.8, pavement - 0.4))), 2),
                  "height_m": round(rng.choices([rng.uniform(1.5, 1.95), rng.uniform(1.0, 1.4)], [0.88, 0.12])[0], 2)}
        way = rng.random()
        if way < 0.65:
            person["along_speed_mps"] = round(rng.choice([-1, 1]) * rng.uniform(0.7, 1.7), 2)
        elif way < 0.85:  # over the road, on a crossing where there is one
            if crossings:
                person["station_m"] = round(rng.choice(crossings) + rng.uniform(-1.4, 1.4), 2)
            person["offset_m"] = round(rng.uniform(-edge, edge), 2)
            person["across_speed_mps"] = round(rng.choice([-1, 1]) * rng.uniform(0.5, 1.4), 2)
        people.append(person)
    return people


def scene(seed, family, rig):
    """The scene as the mapping that `takt simulate` reads; `rig`: path as it stands in the file."""
    rng = random.Random(f"takt scene {family} {seed}")
    layout = LAYOUTS[family]
    lane = rng.uniform(*layout["lane"])
    parking = rng.uniform(*layout["parking"])
    pavement = rng.uniform(*layout["pavement"])
    edge = lane + parking
    start = 40.0
    speed = 0.0 if rng.random() < 0.08 else rng.uniform(3, 14)
    way = speed * FRAMES
    last = start + way + 110

    segments, length = [], 0.0
    while length < last + 60:
        piece = {"length_m": round(rng.uniform(25, 110), 1)}
        if rng.random() < 0.6:
            piece["radius_m"] = round(rng.choice([-1, 1]) * math.exp(rng.uniform(math.log(70), math.log(600))), 1)
        segments.append(piece)
        length += piece["length_m"]
    crossings = [round(rng.uniform(start + 10, last), 1) for _ in range(rng.choice([0, 0, 1, 1, 2]))]

    traffic = rng.choice([0.0, 0.5, 1.0, 1.0, 2.0])  # how dense
    vehicles = []
    if traffic:
        gap = (6 / traffic + 3, 34 / traffic + 6)
        # In front of us, as fast as we are or faster; behind the camera nothing is seen.
        vehicles += _lane(rng, start + rng.uniform(9, 26), last, -lane / 2, 0,
                          speed + rng.uniform(0, 1.0) if speed else 0.0, gap, lane)
        oncoming = rng.uniform(2, 11)
        vehicles += _lane(rng, start - 10, last + oncoming * FRAMES, lane / 2, 180, oncoming, gap, lane)
    share = layout["parked"] * rng.uniform(0.5, 1.2)
    for side in (-1, 1):
        if parking >= 1.8 and rng.random() < 0.9:
            vehicles += _parked(rng, start - 5, last, side * (lane + parking / 2), parking, share, layout["across"])
        if layout["across"] > 0.3 and pavement > 8 and rng.random() < 0.7:  # a second row, beyond
            vehicles += _parked(rng, start, last, side * (edge + pavement * 0.6), 6.0, share * 0.6, layout["across"])
    if rng.random() < 0.4:  # crossing traffic, seen from the side
        for _ in range(rng.randint(1, 2)):
            direction = rng.choice([-1, 1])
            vehicle, _ = _vehicle(rng, start + way + rng.uniform(12, 45), -direction * rng.uniform(2, 22),
                                  direction * 90)
            vehicle["across_speed_mps"] = round(direction * rng.uniform(0.5, 4.5), 2)
            vehicles.append(vehicle)

    sides = ("left", "right")
    houses = [{"side": side, "from_m": round(-60 + rng.uniform(0, 30), 1), "to_m": round(last + 80, 1),
               "gap_m": round(rng.uniform(*layout["gap"]), 1), "length_m": [round(rng.uniform(7, 14), 1), 26],
               "height_m": [round(rng.uniform(4, 9), 1), round(rng.uniform(10, 24), 1)], "depth_m": 14,
               "setback_m": round(rng.uniform(*layout["setback"]), 1)}
              for side in sides if rng.random() < layout["houses"]]
    trees = [{"side": side, "from_m": round(-20 + rng.uniform(0, 15), 1), "to_m": round(last + 60, 1),
              "spacing_m": round(rng.uniform(*layout["tree_spacing"]), 1),
              "behind_kerb_m": round(rng.uniform(0.6, max(0.7, pavement)), 1),
              "height_m": [round(rng.uniform(3.5, 6), 1), round(rng.uniform(6.5, 11), 1)]}
             for side in sides if rng.random() < layout["trees"]]
    lamps = [{"side": side, "from_m": round(-10 + rng.uniform(0, 20), 1), "to_m": round(last + 60, 1),
              "spacing_m": round(rng.uniform(18, 45), 1), "behind_kerb_m": 0.5,
              "height_m": round(rng.uniform(5, 10), 1)}
             for side in sides if rng.random() < 0.6]

    return {
        "name": f"{family}_{seed}",
        "rig": rig,
        "seed": seed,
        "start_s": 1000,
        "duration_ms": FRAMES * 1000 + 500,
        "sun": {"elevation_deg": round(rng.uniform(10, 75), 1), "azimuth_deg": round(rng.uniform(-180, 180), 1)},
        "road": {"lane_width_m": round(lane, 2), "parking_width_m": round(parking, 2),
                 "pavement_width_m": round(pavement, 2), "crossings_m": crossings, "segments": segments},
        "ego": {"station_m": start, "offset_m": round(-lane / 2 + rng.gauss(0, 0.15) * lane, 2),
                "speed_mps": round(speed, 2)},
        "vehicles": vehicles,
        "pedestrians": _people(rng, rng.randint(*layout["people"]), start + 4, last - 30, edge, pavement, crossings),
        "building_rows": houses,
        "tree_rows": trees,
        "lamp_rows": lamps,
        "sensors": {
            "camera": {"jpeg_quality": rng.randint(70, 95), "noise_levels": round(rng.uniform(0.3, 3.0), 2),
                       "exposure": round(math.exp(rng.uniform(math.log(0.55), math.log(1.7))), 3)},
            # The LiDAR of configs/scenes/city.yaml: its returns per object tell what scenery hides.
            "lidar": {"elevations_deg": [-22, -17, -13.5, -11, -9, -7.5, -6.3, -5.4, -4.7, -4.1, -3.6, -3.1, -2.7,
                                         -2.3, -1.9, -1.5, -1.1, -0.7, -0.3, 0.2, 0.8, 1.6, 3],
                      "columns": 600, "maximum_range_m": 120, "range_noise_m": 0.02, "dropout": 0.01},
            "radar": {"half_field_of_view_deg": 60, "maximum_range_m": 90, "range_noise_m": 0.12,
                      "azimuth_noise_deg": 0.5, "speed_noise_mps": 0.08, "clutter_per_scan": 3},
            "truth": {"period_ms": 1000},
        },
    }


def sparse_rig(rig):
    """The given rig (configs/rigs/sim.yaml as a mapping) with camera and LiDAR alone, both once a second.

    Camera and LiDAR keep their places and the camera its lens; a sweep lasts 2 ms around the exposure, so that its
    returns per object belong to the picture, and the truth has the picture's stamp.
    """
    sensors = []
    for sensor in rig["sensors"]:
        if sensor["kind"] == "camera":
            timing = dict(sensor["timing"], rate_hz=1, phase_ms=0)
        elif sensor["kind"] == "lidar":
            sensor = dict(sensor, capacity=20000)  # none is left out
            timing = dict(sensor["timing"], rate_hz=1, phase_ms=1, sweep_ms=2)
        else:
            continue
        sensors.append(dict(sensor, timing=timing))
    return dict(rig, name="sim_sparse", sensors=sensors)


def main():
    import sys

    import yaml

    family, seed = sys.argv[1:]
    whole = scene(int(seed), family, "../rigs/sim.yaml")
    whole["duration_ms"] = 3000
    whole["sensors"]["truth"]["period_ms"] = 50
    print(f"# A street that no network was trained on: tools/train/scenes.py {family} {seed}")
    yaml.safe_dump(whole, sys.stdout, sort_keys=False, width=120, default_flow_style=None)


if __name__ == "__main__":
    main()
