// SPDX-License-Identifier: GPL-2.0
/*
 * YUV4MPEG2 reader: 8 bit 4:2:0 only. Pictures are read, not mapped: who makes the file anew while
 * it plays would end the program by SIGBUS. The range of samples has no field of its own: writers
 * have agreed on an X one.
 */
#include "streamer/media/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "streamer/options.h"

#define MAGIC "YUV4MPEG2 "
#define FRAME "FRAME"
#define FULL_RANGE "XCOLORRANGE=FULL"
#define PACE_PRECISION 0.002 /* of time stamps: jitter is no half picture */

gboolean source_is_pipe(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISFIFO(st.st_mode);
}

char *source_uri(const char *path, int *pipe, GError **error)
{
	int fd;

	*pipe = -1;
	if (!source_is_pipe(path))
		return gst_filename_to_uri(path, error);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno), "%s: %s",
			    path, g_strerror(errno));
		return NULL;
	}
	g_printerr("paqm-streamer: %s is a pipe: waiting for what another program writes to it\n",
		   path);
	*pipe = fd;
	return g_strdup_printf("fd://%d", fd);
}

gboolean source_is_that_pipe(const char *path, int pipe)
{
	struct stat named, open;

	return !stat(path, &named) && !fstat(pipe, &open) && named.st_dev == open.st_dev &&
	       named.st_ino == open.st_ino;
}

static gboolean refuse(GError **error, const char *path, const char *why)
{
	g_set_error(error, USAGE_ERROR, 0,
		    "%s: %s; make one with: ffmpeg -i INPUT -pix_fmt yuv420p "
		    "-vf scale=640:360,fps=24 OUTPUT.y4m",
		    path, why);
	return FALSE;
}

/* Where they are, and what the head says of them. */
static gboolean find_pictures(struct y4m *y, const char *path, const char *data, gsize size,
			      GError **error)
{
	const char *end = data + size, *p, *line;

	if (!data || size < 10 || memcmp(data, MAGIC, strlen(MAGIC)))
		return refuse(error, path, "not a y4m file");
	line = memchr(data, '\n', end - data);
	if (!line)
		return refuse(error, path, "no header");
	y->fps_n = 24;
	y->fps_d = y->par_n = y->par_d = 1;
	for (p = data + strlen(MAGIC); p < line;) {
		const char *space = memchr(p, ' ', line - p);
		char *token = g_strndup(p, (space ? space : line) - p);
		gboolean ok = TRUE;
		int n, d;

		if (*token == 'W')
			y->width = atoi(token + 1);
		else if (*token == 'H')
			y->height = atoi(token + 1);
		else if (*token == 'F')
			ok = sscanf(token + 1, "%d:%d", &y->fps_n, &y->fps_d) == 2 &&
			     y->fps_n > 0 && y->fps_d > 0;
		else if (*token == 'A' && sscanf(token + 1, "%d:%d", &n, &d) == 2 && n > 0 && d > 0)
			y->par_n = n, y->par_d = d; /* 0:0 is not known */
		else if (*token == 'C')
			ok = !strncmp(token, "C420", 4) && !strchr(token, 'p');
		else if (!strcmp(token, FULL_RANGE))
			y->full_range = TRUE;
		if (!strncmp(token, "C420", 4) &&
		    (!strcmp(token, "C420jpeg") || !strcmp(token, "C420paldv") ||
		     !strcmp(token, "C420mpeg2")))
			ok = TRUE;
		g_free(token);
		if (!ok)
			return refuse(error, path, "not 8 bit 4:2:0 with a frame rate");
		p = space ? space + 1 : line;
	}
	if (y->width < 16 || y->height < 16 || y->width > 4096 || y->height > 4096 ||
	    y->width % 2 || y->height % 2)
		return refuse(error, path, "no even picture size from 16 to 4096");
	if (y->fps_n < y->fps_d || y->fps_n > SOURCE_FPS_MAX * (gint64)y->fps_d)
		return refuse(error, path, "no frame rate from 1 to 240");
	y->frame_size = (gsize)y->width * y->height * 3 / 2;
	y->offset = g_array_new(FALSE, FALSE, sizeof(gsize));
	for (p = line + 1; end - p > 6 && !memcmp(p, FRAME, strlen(FRAME));) {
		gsize offset;

		line = memchr(p, '\n', end - p);
		if (!line || (gsize)(end - line - 1) < y->frame_size)
			break;
		offset = line + 1 - data;
		g_array_append_val(y->offset, offset);
		p = line + 1 + y->frame_size;
	}
	y->frames = y->offset->len;
	if (!y->frames)
		return refuse(error, path, "no whole picture inside");
	return TRUE;
}

gboolean y4m_open(struct y4m *y, const char *path, GError **error)
{
	GMappedFile *whole;
	gboolean ok;

	memset(y, 0, sizeof(*y));
	y->file = fopen(path, "re");
	if (!y->file) {
		g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno), "%s: %s",
			    path, g_strerror(errno));
		return FALSE;
	}
	whole = g_mapped_file_new_from_fd(fileno(y->file), FALSE, error);
	ok = whole && find_pictures(y, path, g_mapped_file_get_contents(whole),
				    g_mapped_file_get_length(whole), error);
	if (whole)
		g_mapped_file_unref(whole);
	if (!ok)
		y4m_close(y);
	return ok;
}

GstBuffer *y4m_frame(const struct y4m *y, guint index)
{
	gsize size = (gsize)y->width * y->height;
	gsize offset[4] = {0, size, size + size / 4, 0};
	gint stride[4] = {y->width, y->width / 2, y->width / 2, 0};
	GstBuffer *buf = gst_buffer_new_allocate(NULL, y->frame_size, NULL);
	GstMapInfo map;
	ssize_t got;

	gst_buffer_map(buf, &map, GST_MAP_WRITE);
	got = pread(fileno(y->file), map.data, map.size,
		    (off_t)g_array_index(y->offset, gsize, index));
	gst_buffer_unmap(buf, &map);
	if (got != (ssize_t)y->frame_size) {
		gst_buffer_unref(buf);
		return NULL;
	}
	/* Rows are packed, whatever alignment GStreamer would assume. */
	gst_buffer_add_video_meta_full(buf, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420,
				       y->width, y->height, 3, offset, stride);
	return buf;
}

GstCaps *y4m_caps(const struct y4m *y)
{
	GstCaps *caps = gst_caps_new_simple(
		"video/x-raw", "format", G_TYPE_STRING, "I420", "width", G_TYPE_INT, y->width,
		"height", G_TYPE_INT, y->height, "framerate", GST_TYPE_FRACTION, y->fps_n, y->fps_d,
		"pixel-aspect-ratio", GST_TYPE_FRACTION, y->par_n, y->par_d, NULL);
	GstVideoInfo info;
	char *colours;

	if (!y->full_range)
		return caps;
	/* what is usual for that size, but for the range */
	gst_video_info_set_format(&info, GST_VIDEO_FORMAT_I420, (guint)y->width, (guint)y->height);
	info.colorimetry.range = GST_VIDEO_COLOR_RANGE_0_255;
	colours = gst_video_colorimetry_to_string(&info.colorimetry);
	gst_caps_set_simple(caps, "colorimetry", G_TYPE_STRING, colours, NULL);
	g_free(colours);
	return caps;
}

/*
 * avdec_h264 divides integers: 7.5 pictures a second are 7 to it. Where time stamps say that half a
 * picture is missing, it is.
 */
static void true_pace(const GstVideoInfo *info, int *fps_n, int *fps_d)
{
	gint64 half_n = 2 * (gint64)info->fps_n + 1, half_d = 2 * (gint64)info->fps_d;
	double off;

	if (info->fps_n <= 0)
		return;
	off = (double)*fps_n / *fps_d * (double)half_d / (double)half_n - 1;
	*fps_n = info->fps_n;
	*fps_d = info->fps_d;
	if (half_n > G_MAXINT || half_d > G_MAXINT || ABS(off) > PACE_PRECISION)
		return;
	*fps_n = (int)half_n;
	*fps_d = (int)half_d;
}

gboolean y4m_write(FILE *file, GstSample *picture, gboolean first, int fps_n, int fps_d)
{
	GstVideoFrame frame;
	GstVideoInfo info;

	errno = EINVAL;
	if (!gst_video_info_from_caps(&info, gst_sample_get_caps(picture)) ||
	    !gst_video_frame_map(&frame, &info, gst_sample_get_buffer(picture), GST_MAP_READ))
		return FALSE;
	if (first) {
		true_pace(&info, &fps_n, &fps_d);
		fprintf(file, MAGIC "W%d H%d F%d:%d Ip A%d:%d C420jpeg%s\n", info.width,
			info.height, fps_n, fps_d, info.par_n, info.par_d,
			info.colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255 ? " " FULL_RANGE
									      : "");
	}
	fputs(FRAME "\n", file);
	for (int c = 0; c < 3; c++) {
		const guint8 *row = GST_VIDEO_FRAME_COMP_DATA(&frame, c);
		size_t width = GST_VIDEO_FRAME_COMP_WIDTH(&frame, c);
		size_t rows = GST_VIDEO_FRAME_COMP_HEIGHT(&frame, c);
		size_t stride = GST_VIDEO_FRAME_COMP_STRIDE(&frame, c);

		if (stride == width) { /* a plane in one piece: fewer and larger writes */
			width *= rows;
			rows = 1;
		}
		for (; rows; rows--, row += stride)
			fwrite(row, 1, width, file);
	}
	gst_video_frame_unmap(&frame);
	return !ferror(file);
}

void y4m_close(struct y4m *y)
{
	if (y->offset)
		g_array_unref(y->offset);
	if (y->file)
		fclose(y->file);
	memset(y, 0, sizeof(*y));
}
