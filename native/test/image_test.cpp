#include "native/vlm/image.h"

#include "doctest/doctest.h"
#include "native/test/counter_weights.h"
#include "native/test/expect_error.h"
#include "native/vlm/layout.h"

using namespace boq;
using boq::test::expect_error;
using vlm::ImageSize;

TEST_CASE("image: target sizes") {
  constexpr int64_t kMin = 3136, kMax = 12845056;
  CHECK(vlm::smart_resize({1365, 2048}, 28, kMin, kMax) == ImageSize{1372, 2044});
  CHECK(vlm::smart_resize({100, 100}, 28, kMin, kMax) == ImageSize{112, 112});
  CHECK(vlm::smart_resize({20, 20}, 28, kMin, kMax) == ImageSize{56, 56});
  CHECK(vlm::smart_resize({3000, 4000}, 28, kMin, 1003520) == ImageSize{840, 1148});
  CHECK(vlm::smart_resize({4000, 48}, 32, 4, kMax) == ImageSize{4000, 64});
  CHECK(vlm::smart_resize({1, 200}, 28, kMin, kMax) == ImageSize{28, 812});
  CHECK(vlm::smart_resize({10000, 50}, 28, kMin, 3136) == ImageSize{784, 28});
  expect_error(ErrorCode::kImageInvalid, "more than 200 times", [] {
    vlm::smart_resize({1, 201}, 28, kMin, kMax);
  });
  CHECK(vlm::smart_resize({10, 500}, 28, 1, kMax) == ImageSize{28, 28});
}

TEST_CASE("image: wrong bytes and sizes are refused") {
  const auto refuse = [](vlm::RgbImage image, const std::string& message) {
    expect_error(ErrorCode::kImageInvalid, message, [&] { vlm::check_image(image); });
  };
  refuse({{}, 0, 0}, "is empty");
  refuse({{}, 10, 0}, "is empty");
  refuse({{}, -1, -3}, "is empty");
  refuse({{1, 2, 3}, 1, 2}, "needs 6 bytes, found 3");
  refuse({{}, int64_t{1} << 20, int64_t{1} << 20}, "is larger than");
  refuse({{}, int64_t{1} << 62, int64_t{1} << 62}, "is larger than");
  CHECK_NOTHROW(vlm::check_image({{1, 2, 3}, 1, 1}));
}

TEST_CASE("image: a flat picture stays flat through every resize") {
  for (const uint8_t value : {0, 1, 128, 254, 255}) {
    const vlm::RgbImage flat{std::vector<uint8_t>(37 * 53 * 3, value), 37, 53};
    for (const ImageSize size : {ImageSize{53, 10}, ImageSize{200, 37}, ImageSize{11, 90}, ImageSize{1, 1}}) {
      const auto resized = vlm::resize_bicubic(flat, size);
      REQUIRE(resized.width == size.width);
      REQUIRE(resized.height == size.height);
      CHECK(resized.data == std::vector<uint8_t>(static_cast<size_t>(size.width * size.height * 3), value));
    }
  }
}

TEST_CASE("layout: windows are those of the reference, sorted by shape") {
  vlm::VisionConfig config;
  config.patch_size = 14;
  config.spatial_merge_size = 2;
  config.window_size = 112;
  const auto order = vlm::make_window_order({10, 12}, config);  // 5 rows of 6 merged cells
  CHECK(order.window_lengths == std::vector<int64_t>{64, 32, 16, 8});
  CHECK(order.cells == std::vector<int64_t>{0,  1, 2, 3,  6,  7,  8,  9,  12, 13, 14, 15, 18, 19, 20,
                                            21, 4, 5, 10, 11, 16, 17, 22, 23, 24, 25, 26, 27, 28, 29});
  const auto places = vlm::patch_positions({10, 12}, {7}, config);
  CHECK((places == std::vector<std::array<int64_t, 2>>{{2, 2}, {2, 3}, {3, 2}, {3, 3}}));
  CHECK(vlm::make_window_order({52, 92}, config).window_lengths.size() == 84);
}

TEST_CASE("layout: image tokens share one time and continue after the longer side") {
  std::vector<int32_t> ids(6, 1);
  ids.insert(ids.end(), 35, 9);
  ids.push_back(1);
  const auto places = vlm::token_positions(ids, {{10, 14}}, 9, 2);  // 5 x 7 cells
  CHECK((places[5] == std::array<int64_t, 3>{5, 5, 5}));
  CHECK((places[6] == std::array<int64_t, 3>{6, 6, 6}));
  CHECK((places[40] == std::array<int64_t, 3>{6, 10, 12}));
  CHECK((places[41] == std::array<int64_t, 3>{13, 13, 13}));
}
