// SPDX-License-Identifier: MIT
// As much of OpenCV's interface as the programs of MIGraphX's guides use, so that they build and
// run where it is not installed. There is no decoder: imread answers one made-up picture, whatever
// the file. Images are resized to the nearest pixel.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#define CV_8UC3 16
#define CV_32F 5

namespace cv
{

using uchar = unsigned char;

struct Size {
    int width, height;

    Size(int w, int h) : width(w), height(h)
    {
    }
};

struct Scalar {
    double val[4];

    Scalar(double a = 0, double b = 0, double c = 0, double d = 0) : val{a, b, c, d}
    {
    }
};

// Rows and columns of three bytes, or any number of dimensions of floats.
struct Mat {
    int rows = 0, cols = 0;
    uchar *data = nullptr;
    std::vector<int> size;

    Mat() = default;
    Mat(int dims, const int *sizes, int type) : size(sizes, sizes + dims)
    {
        std::size_t bytes = type == CV_32F ? sizeof(float) : 3;
        for (int n : size)
            bytes *= static_cast<std::size_t>(n);
        m_own = std::make_shared<std::vector<uchar>>(bytes);
        data = m_own->data();
        rows = size[0];
        cols = size[1];
    }
    // Borrows the data.
    Mat(int dims, const int *sizes, int, void *borrowed)
        : rows(sizes[0]), cols(sizes[1]), data(static_cast<uchar *>(borrowed)),
          size(sizes, sizes + dims)
    {
    }
    template <class T> T &at(const int *index)
    {
        std::size_t at = 0;
        for (std::size_t i = 0; i < size.size(); i++)
            at = at * static_cast<std::size_t>(size[i]) + static_cast<std::size_t>(index[i]);
        return reinterpret_cast<T *>(data)[at];
    }

  private:
    std::shared_ptr<std::vector<uchar>> m_own;
};

inline Mat imread(const std::string &, int = 1)
{
    const int sizes[] = {48, 64};
    Mat picture(2, sizes, CV_8UC3);
    for (int i = 0; i < 48 * 64 * 3; i++)
        picture.data[i] = static_cast<uchar>(i * 7 % 251);
    return picture;
}

namespace dnn
{

// Pictures side by side in memory as floats, NCHW: (pixel - mean) * scale.
inline void blobFromImages(const std::vector<Mat> &images, Mat &blob, double scale, Size size,
                           const Scalar &mean, bool, bool)
{
    const int sizes[] = {static_cast<int>(images.size()), 3, size.height, size.width};
    blob = Mat(4, sizes, CV_32F);
    float *to = reinterpret_cast<float *>(blob.data);
    for (const Mat &image : images)
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < size.height; y++)
                for (int x = 0; x < size.width; x++) {
                    const int row = y * image.rows / size.height;
                    const int column = x * image.cols / size.width;
                    const uchar pixel = image.data[(row * image.cols + column) * 3 + c];
                    *to++ = static_cast<float>((pixel - mean.val[c]) * scale);
                }
}

} // namespace dnn
} // namespace cv
