// Raw sensor packets as a log: from a network capture, and from recordings of ROS drivers that kept their packets.
//
//   capture (.pcap)                    /velodyne/points, /ars548/detections, /ars548/objects; a second sensor of a kind
//                                      (another sender or port) gets _2, and so on
//   velodyne_msgs/VelodyneScan on T    T/points: one cloud per message, as the driver cut its sweeps
//   nebula_msgs/NebulaPackets on T     T/detections, T/objects (Continental ARS548)
//
// A Velodyne sweep of a capture ends where the azimuth starts again; the first and last may be partial. The stamp is
// the first firing (rig: stamp per_point), arrival the host's time of the last packet. Where the sensor's clock agrees
// with the host's within a second of the hour, stamps are the sensor's; else they are the host's, and notes() says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

// kInput: no capture, or datagrams of which takt reads none (their ports are named). A capture without any datagram is
// an empty log.
Result<std::unique_ptr<LogReader>> open_capture(const std::string& path, const std::vector<ReleaseRule>& rules = {});

// Topics of packets of a log that is read by another reader become topics of decoded messages; everything else passes.
// A log without such topics is returned as it is. Messages whose packets are damaged are left out and become problems.
Result<std::unique_ptr<LogReader>> decode_packet_topics(std::unique_ptr<LogReader> log);
// What the inner reader needs so that rules for the decoded topics reach it.
std::vector<ReleaseRule> with_packet_topics(const std::vector<ReleaseRule>& rules);

}  // namespace takt::sensors
