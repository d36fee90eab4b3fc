// Protobuf bytes of the pipeline's own messages (takt.ObjectList, takt.TrackList, takt.JobRecord) and the displayable
// twins of lists. Field tables: docs/log_format.md. Deterministic: equal inputs give equal bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/messages/messages.h"
#include "runtime/transport/chunk.h"
#include "scheduler/dispatch/record.h"
#include "sensors/logs/log_messages.h"
#include "sensors/logs/mcap_writer.h"

namespace takt::pipeline {

// Schema of "takt.ObjectList", "takt.TrackList", "takt.JobRecord" (protobuf) and "takt.JobMetrics" (JSON Schema).
// kInternal for another name.
Result<sensors::LogSchema> pipeline_schema(std::string_view name);

// `sources`: of the chunk header, by sensor of the rig; sensors without a stamp are left out.
std::string encode(const ObjectList& list, std::span<const transport::SourceStamps> sources = {});
std::string encode(const TrackList& list, std::span<const transport::SourceStamps> sources = {});
// Names make the record readable without the schedule.
std::string encode(const sched::JobRecord& record, std::string_view stage, std::string_view variant);
// The record's displayable twin "takt.JobMetrics": a flat JSON object of numbers in microseconds that viewers plot.
std::string job_metrics(const sched::JobRecord& record, std::string_view stage, std::string_view variant);

// Box of each object with an extent, coloured by class, in `frame_id` (the vehicle frame).
sensors::log::SceneUpdate scene_of(const ObjectList& list, std::string_view frame_id, Duration lifetime);
sensors::log::SceneUpdate scene_of(const TrackList& list, std::string_view frame_id, Duration lifetime);
// Rectangles of objects that have an image box.
sensors::log::ImageAnnotations annotations_of(const ObjectList& list);

Result<ObjectList> decode_object_list(std::span<const std::byte> bytes);
Result<TrackList> decode_track_list(std::span<const std::byte> bytes);

}  // namespace takt::pipeline
