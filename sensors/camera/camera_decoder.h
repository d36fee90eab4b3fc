// Pictures -> sensors::Image: foxglove.CompressedImage and sensor_msgs/CompressedImage (JPEG or PNG) as RGB8,
// foxglove.RawImage and sensor_msgs/Image as raw_image.h says.
//
// JPEG by libjpeg-turbo with the accurate integer DCT: the same bytes on every machine with the same library version
// (keep jpeg_library_version() beside digests). A picture that is cut, corrupt or of another size than the rig says is
// a bad frame; libjpeg would go on with grey areas.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "sensors/logs/log_reader.h"
#include "sensors/messages/decoder.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// kConfiguration when the sensor is of another kind or lacks what the decoder needs, or the channel carries
// another type.
Result<std::unique_ptr<Decoder>> make_camera_decoder(const RigSensor& sensor, const LogChannel& channel);
// Of foxglove.CompressedImage.
Result<std::unique_ptr<Decoder>> make_camera_decoder(const RigSensor& sensor);

std::string jpeg_library_version();  // "libjpeg-turbo 2.1.5"

}  // namespace takt::sensors
