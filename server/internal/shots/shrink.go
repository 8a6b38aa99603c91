package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"slices"
)

// shrink makes a picture of few colours small: a PNG with a palette of those that it has most of. Others, which are edges of
// letters, become the nearest.
func shrink(picture io.Reader) ([]byte, error) {
	decoded, err := png.Decode(picture)
	if err != nil {
		return nil, err
	}
	from := image.NewRGBA(decoded.Bounds())
	draw.Draw(from, from.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
	count := map[color.RGBA]int{}
	for i := 0; i < len(from.Pix); i += 4 {
		count[color.RGBA{from.Pix[i], from.Pix[i+1], from.Pix[i+2], 255}]++
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var chosen color.Palette
	for _, apart := range []int{300, 100, 0} { // first those that differ, so that a rare red is not lost to many greys
		for _, c := range colours {
			if len(chosen) < 256 && (len(chosen) == 0 || distance(c, chosen[chosen.Index(c)].(color.RGBA)) > apart) {
				chosen = append(chosen, c)
			}
		}
	}
	index := make(map[color.RGBA]uint8, len(colours))
	for _, c := range colours {
		index[c] = uint8(chosen.Index(c))
	}
	to := image.NewPaletted(from.Bounds(), chosen)
	for i := range to.Pix {
		to.Pix[i] = index[color.RGBA{from.Pix[4*i], from.Pix[4*i+1], from.Pix[4*i+2], 255}]
	}
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	err = encoder.Encode(&b, to)
	return b.Bytes(), err
}

// distance is the square of that between two colours.
func distance(a, b color.RGBA) int {
	r, g, l := int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B)
	return r*r + g*g + l*l
}
