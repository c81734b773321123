"""Folding of texts for trigrams: characters in lower case, and without accents and the like.

The tokenizer of the reference puts each character into lower case first, and then replaces it by ASCII characters. What
has no lower case thus becomes upper case, such as the letters of formulas, and its tokens are those of no other
characters. Replacements are found in these tables, which a test compares with the reference.
"""

from __future__ import annotations

import functools
import string

import numpy as np
import numpy.typing as npt

from lance_format.kernels.texts.trigrams import OTHER, ZERO

_SERIES = """
1d33+8=G 2074+6=4 2080+10=0 2460+9=1 24b6+26=a 24d0+26=a 32c0+9=1 3358+10=0 33e0+9=1 ff10+10=0 ff21+26=a
ff41+26=a 1ccd6+22=A 1ccf0+10=0 1d400+22=A 1d41a+26=a 1d434+22=A 1d44e+7=a 1d456+18=i 1d468+22=A 1d482+26=a
1d4bd+7=h 1d4c5+11=p 1d4d0+22=A 1d4ea+26=a 1d50d+8=J 1d51e+26=a 1d552+26=a 1d56c+22=A 1d586+26=a 1d5a0+22=A
1d5ba+26=a 1d5d4+22=A 1d5ee+26=a 1d608+22=A 1d622+26=a 1d63c+22=A 1d656+26=a 1d670+22=A 1d68a+26=a 1d7ce+10=0
1d7d8+10=0 1d7e2+10=0 1d7ec+10=0 1d7f6+10=0 1f130+22=A 1fbf0+10=0
"""
"""Code point, length and first replacement of characters in a row whose replacements follow each other too."""

_REPLACED = """
0: 1d42 2070 24ea 33bc 1ccec 1d416 1d44a 1d47e 1d4b2 1d4e6 1d51a 1d54e 1d582 1d5b6 1d5ea 1d61e 1d652 1d686 1f146
03: 2189 1f12e 0C: 1f14f 0_: 1f100-1f101 0b: 33dd 1: b9 215f 1cced 1d417 1d44b 1d47f 1d4b3 1d4e7 1d51b 1d54f
1d583 1d5b7 1d5eb 1d61f 1d653 1d687 1f147 10: 2469 32c9 3362 33e9 10_: 2491 11: 246a 32ca 3363 33ea 110: 2152
11_: 2492 12: bd 246b 32cb 3364 33eb 12_: 2493 13: 2153 246c 3365 33ec 13_: 2494 14: bc 246d 3366 33ed 14_: 2495
15: 2155 246e 3367 33ee 15_: 2496 16: 2159 246f 3368 33ef 16_: 2497 17: 2150 2470 3369 33f0 17_: 2498 18: 215b
2471 336a 33f1 18_: 2499 19: 2151 2472 336b 33f2 19_: 249a 1_: 2488 1f102 2: b2 1ccee 1d418 1d44c 1d480 1d4b4
1d4e8 1d51c 1d550 1d584 1d5b8 1d5ec 1d620 1d654 1d688 1f148 20: 2473 336c 33f3 20_: 249b 21: 3251 336d 33f4 22:
3252 336e 33f5 23: 2154 3253 336f 33f6 24: 3254 3370 33f7 25: 2156 3255 33f8 26: 3256 33f9 27: 3257 33fa 28:
3258 33fb 29: 3259 33fc 2_: 2489 1f103 3: b3 2124 2128 1ccef 1d419 1d44d 1d481 1d4b5 1d4e9 1d585 1d5b9 1d5ed
1d621 1d655 1d689 1f149 30: 325a 33fd 31: 325b 33fe 32: 325c 33: 325d 34: be 325e 35: 2157 325f 36: 32b1 37:
32b2 38: 215c 32b3 39: 32b4 3_: 248a 1f104 40: 32b5 41: 32b6 42: 32b7 43: 32b8 44: 32b9 45: 2158 32ba 46: 32bb
47: 32bc 48: 32bd 49: 32be 4_: 248b 1f105 50: 32bf 56: 215a 58: 215d 5_: 248c 1f106 6_: 248d 1f107 78: 215e 7_:
248e 1f108 8_: 248f 1f109 9_: 2490 1f10a A: 1d2c 3382 1d49c 1d504 1d538 AE: 1d2d AU: 3373 Am: 33df B: 1d2e 212c
1d505 1d539 Bq: 33c3 C: 2102-2103 212d a7f2 1d49e 1f12b CD: 1f12d Ckg: 33c6 Co_: 33c7 D: 1d30 2145 1d49f 1d507
1d53b DJ: 1f190 E: 1d31 2130 1d508 1d53c F: 2109 2131 338c a7f3 1d509 1d53d FA1: 213b G: 1d4a2 1d50a 1d53e GB:
3387 GHz: 3393 GPa: 33ac Gy: 33c9 H: 210b-210d a7f8 HP: 33cb HV: 1f14a Hg: 32cc Hz: 3390 I: 2110-2111 1d540 IU:
337a J: 1d4a5 1d541 K: 1d4a6 1d542 KB: 3385 KK: 33cd KM: 33ce L: 2112 1d543 LTD: 32cf M: 2133 33c1 1d544 M0:
33bf MB: 3386 MC: 1f16a MD: 1f16b MHz: 3392 MPa: 33ab MR: 1f16c MV: 33b9 1f14b N: 2115 1d4a9 No: 2116 O: 1d3c
1d4aa 1d546 P: 1d3e 2119 1d4ab PH: 33d7 PPM: 33d9 PPV: 1f14e PR: 33da PTE: 3250 Pa: 33a9 Q: 211a a7f4 1d4ac R:
1d3f 211b-211d 1f12c Rs: 20a8 S: a7f1 1d4ae 1d516 1d54a 1f12a SD: 1f14c SM: 2120 SS: 1f14d Sv: 33dc T: 1d40
1d4af 1d517 1d54b TEL: 2121 THz: 3394 TM: 2122 U: 1d41 1d4b0 1d518 1d54c V: 2c7d 33b6 1d4b1 1d519 1d54d Vm: 33de
a: aa c0-c5 e0-e5 100-105 1cd-1ce 1de-1e1 1fa-1fb 200-203 226-227 1d43 1e00-1e01 1e9a 1ea0-1eb7 2090 212b 1d4b6
a_: 33c2 a_c: 2100 a_s: 2101 ae: c6 e6 1e2-1e3 1fc-1fd 10783 b: 1d47 1e02-1e07 1d4b7 bar: 3374 c: c7 e7 106-10d
1d9c 1e08-1e09 216d 217d 1d4b8 c_o: 2105 c_u: 2106 cal: 3388 cc: 33c4 cd: 33c5 cm: 339d cm2: 33a0 cm3: 33a4 d:
d0 f0 10e-111 1d48 1d9e 1e0a-1e13 2146 216e 217e 1d4b9 dB: 33c8 da: 3372 dl: 3397 dm: 3377 dm2: 3378 dm3: 3379
dz: 1c4-1c6 1f1-1f3 e: c8-cb e8-eb 112-11b 204-207 228-229 1d49 1e14-1e1d 1eb8-1ec7 2091 212f 2147 eV: 32ce erg:
32cd f: 1da0 1e1e-1e1f 1d4bb ff: fb00 ffi: fb03 ffl: fb04 fi: fb01 fl: fb02 fm: 3399 g: 11c-123 1e6-1e7 1f4-1f5
1d4d 1e20-1e21 210a 338d gal: 33ff h: 124-127 21e-21f 2b0 1e22-1e2b 1e96 2095 210e-210f 10795 hPa: 3371 ha: 33ca
i: cc-cf ec-ef 128-12f 131 1cf-1d0 208-20b 1d62 1e2c-1e2f 1ec8-1ecb 2071 2139 2148 2160 2170 1d6a4 i_: 130 ii:
2161 2171 iii: 2162 2172 ij: 132-133 in: 33cc iv: 2163 2173 ix: 2168 2178 j: 134-135 1f0 2b2 2149 2c7c k:
136-138 1e8-1e9 1d4f 1e30-1e35 2096 212a 33c0 k0: 33be kA: 3384 kHz: 3391 kPa: 33aa kV: 33b8 kcal: 3389 kg: 338f
kl: 3398 km: 339e km2: 33a2 km3: 33a6 kt: 33cf l: 139-142 2e1 1e36-1e3d 2097 2113 216c 217c 3395 lj: 1c7-1c9 lm:
33d0 ln: 33d1 log: 33d2 lx: 33d3 m: 1d50 1e3e-1e43 2098 216f 217f 339b m0: 33bd m2: 33a1 m3: 33a5 mA: 3383 mV:
33b7 mb: 33d4 mg: 338e mil: 33d5 ml: 3396 mm: 339c mm2: 339f mm3: 33a3 mol: 33d6 ms: 33a7 33b3 ms2: 33a8 n: d1
f1 143-14b 1f8-1f9 1d51 1e44-1e4b 207f 2099 n0: 33bb nA: 3381 nF: 338b nV: 33b5 nj: 1ca-1cc nm: 339a ns: 33b1 o:
ba d2-d6 d8 f2-f6 f8 14c-151 1a0-1a1 1d1-1d2 1ea-1ed 1fe-1ff 20c-20f 22a-231 1d52 1e4c-1e53 1ecc-1ee3 2092 2134
107a2 oV: 3375 oe: 152-153 a7f9 p: 1d56 1e54-1e57 209a p0: 33ba pA: 3380 pF: 338a pV: 33b4 p_: 33d8 pc: 3376 ps:
33b0 q: 107a5 r: 154-159 210-213 2b3 1d63 1e58-1e5f rad: 33ad rads: 33ae rads2: 33af s: 15a-161 17f 218-219 2e2
1e60-1e69 1e9b 209b 33b2 sr: 33db ss: df 1e9e st: fb05-fb06 t: 162-167 21a-21b 1d57 1e6a-1e71 1e97 209c th: de
fe u: d9-dc f9-fc 168-173 1af-1b0 1d3-1dc 214-217 1d58 1d64 1e72-1e7b 1ee4-1ef1 v: 1d5b 1d65 1e7c-1e7f 2164 2174
vi: 2165 2175 vii: 2166 2176 viii: 2167 2177 w: 174-175 2b7 1e80-1e89 1e98 x: 2e3 1e8a-1e8d 2093 2169 2179 xi:
216a 217a xii: 216b 217b y: dd fd ff 176-178 232-233 2b8 1e8e-1e8f 1e99 1ef2-1ef9 z: 179-17e 1dbb 1e90-1e95
"""
"""Replacements, and the code points and their ranges that they replace. `_` stands for what is no letter or digit."""


@functools.cache
def symbols_of_characters() -> npt.NDArray[np.uint64]:
    """Return the symbols of each code point, up to the last that has a replacement; see `kernels.trigrams`.

    Returns
    -------
    uint64[num_code_points]
        Not to be modified.
    """
    replaced = {ord(character): character.lower() for character in string.ascii_letters + string.digits}
    for item in _SERIES.split():
        place, length, first = int(item.split("+")[0], 16), *item.split("+")[1].split("=")
        replaced |= {place + step: chr(ord(first) + step) for step in range(int(length))}
    replacement = ""
    for item in _REPLACED.split():
        if item.endswith(":"):
            replacement = item[:-1]
        else:
            start, _, last = item.partition("-")
            replaced |= dict.fromkeys(range(int(start, 16), int(last or start, 16) + 1), replacement)
    symbols = np.full(max(replaced) + 1, OTHER, np.uint64)
    for place, characters in replaced.items():
        symbols[place] = sum(_symbol(character) << (8 * step) for step, character in enumerate(characters))
    return symbols


def _symbol(character: str) -> int:
    if character == "_":
        return OTHER
    if character.isdigit():
        return int(character) + 1
    return (ord(character) - ord("a") + 11) % 256 or ZERO
