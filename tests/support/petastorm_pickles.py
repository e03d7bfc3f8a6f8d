"""Pickles that petastorm 0.13.1 made of a schema and of indexes of ours, by protocol; see `test_unpickling.py`."""

from __future__ import annotations

import base64

SCHEMAS = {
    0: base64.b85decode(
        "V`Fb{d0%p6X9{0(Wn*t{b98cbV{~tF3UDwAC}VJCbYXLJZ*pxeb#7^MV`yb<VG31lX>(&}Wo=;!a4`yFUteN%X>4?9ZeL#tZ(?d?"
        "V{{5|G73&~a5D;0a5M@iWN<YKR$p#mZDk5@HVRfpVRB?;ZVGTW3UgLpW@%+?WOE8|I0|E9Z)|L3V{~b6ZgUDxa%5$4Wn@HYV{{5|"
        "ISMFrQgAUa3RY=k3UDzo3TH41C}VJCbYXLJZ*pxeb#7^MV`yb<VG31lX>(&}Wo=<bX=Q9=3UDzp3S(biVs&Y3bZKs1UkY?}aBO7?"
        "a4|CqC}%M-3S(|{ZE$%CX>N2jGzxGrGzutmXD|vVV{m13VRLkEa&0bSZ)9a-a|%;qVQgV?LvLhdV+wFFH40}k3QlxzF*XWPa4|Ou"
        "C}eOkI0{x@b8umDYhQGEaAgW`F*yonFbXJRaCviZVRCCOb8&1gba`-Pa|%pvZf8_^aAgW`GB65fG73&~a56CpQgAXd3UgvfFfa;q"
        "a56IrbZ{~>3Q}+~H41Z9aBN{|ZVGTRHVS7j3MgkWG74ugGYTkYGByfhZgp*Nc?xN6bTcvva56UvD0EIqFfa;qa56XwbZ{~`3Q}-0"
        "FbZ>4b8TU4YzlBQF$!le3MgkWG74ugGYTkYGcgKdZgp*Nc?xxDZge;ba5FLrD0F8q3MgkWH40}k3QlxzGcyWOa5FRtC}eOmH40}j"
        "ISOYm3MgZ6d2?`Ka%(PgacnMhd2nTO3R7rra&%OAaAgW`Gd2omG73&~a5FawQgAak3UgvfFfj^ra5FgybZ|5<3Q}-1F$!~5cW-iJ"
        "3UD+s3TH41C}%M;3TH7h3MgkZG74jEb!~8Y3UhRFUkY$EGYTklXD|vVXE8MjXEF*-bZ|5@3Q}-1H3}$Xa5OdwXE8YnXD|vVV{mzM"
        "aA9(5E^~2gE_8WtWpfHsbaH8KXH<D`WeRXKHwtGm3QlxzG&l-Ua5Omzb7Dy_F$#2WH82Wva5XUsQgAgg3UgL+VRs5}H8TolFbXJV"
        "F)|8gF*6D%XEielV{UbAaCr)1d30rSUkY$FGzutmXD|vVXE8MjXEF*-bZ|8_3Q}-2HVP<Ya5XmyXE8YnXEZqqb7Dy_F$#2WH8=`%"
        "a5Xs!QgAjf3UgL)a%p2_3UD?t3TH41C}%M;3TH7h3MgkbF$!a3Wn*b=VQdOSWn*b=VQdO;HZlq*bZ0OMC}%M>3THA3PIPcKGYV30"
        "HZ%$-WN<b$3TH7n3TH41C}VJWb8umDYc6wfY%X+paAk7}L}g=XZDDLwd2nS4a5gpyXEF*-bZ|B|3Q}-3I0`6aa5gy#R&a7<V`+0~"
        "Z*B^3H!uoGF)|8sR&!%vY-I{?H!%uHGYWH7Xkl|ua%E#_b7^mGNp5Cu3UD_v3P~_A3Ugv}Vo5MC3UqKcGYWKYH#7=Ta5psyb5?R`"
        "aAgW`H#Q1qFbXJVF)|8gF*6D%XE!zqV{UbAaCr)1Z*Od03UD_!3Mh1EFbXJVF*OQjG73&~a5p##QgAmp3Mgc7I4}xlF*yonFbXJR"
        "aCviZVRCCOb8&1gba`-Pa|%LlZ){~@Zd7@2WeRXOF$!lg3QlxzI5G-Sa5ysxb7Dy_FbZ^VI5Y}$a5yyzQgApn3UgL>Xk~5+a5y&#"
        "XD|vVXE8DgXE8GhC}%h~3S(|{ZE$%CWMOn=bZKp6HZ%%wI5-L@bZ0OMC}%M>3THA3PIPcMISNv6IWP(+WN<k#3TH7n3TH41C}VJW"
        "b8umDYc6wfY%X+paAk7}RB3Hxb97;Ca8!A4WeRXPG74uh3QlxzIWr1Ua5*#zb7Dy_F$#2WIW-D&a5**#QgAsp3UgL>Woc(<bP8}e"
        "I0|Pl3MgkWG74ugGYTkYIXDVqZgp*Nc?xE1Z((#cGzxGzISMFrXD|vVXE8MjXEF*-bZ{{+FbYy|F)%R-C}eOkFfs~fF*yonFbXJR"
        "aCviZVRCCOb8&1gba`-Pa|%Rnbz*E~RC#b^3UDznGYV%i3QlxzF)%a=QgAUaH41ZLNiZ-9bZ{{+HVSlbF)%j@QgAUaI0|!CaA{+7"
        "b#i42a4|4B3TH41C}%M;3TH7h3MgkWFgXfmGcpP&PEJWP3UqKWF)#{eFbXJRaAkC1b98TVZ7ySPWMyM>3PW#gaB^jHb7f>nZDD6+"
        "LvLhdV+wFFF)<2fG73&~a4|753Q}+}F*6D%WN<MtGzwN<X>DO=WnW`&WMyLta4|783RW&~Zf6Q`F)=m@b5>t*bzy92ba@JJF)=p^"
        "NjNYHb7Dy_FbZ^VF)=s_bZ{{-ISNv6F)}a;b5?L@Z**@8a4|A53TH41C}%M;3TH7h3MgkWGBFBgGcpP&Ni+&cHVSlbF)}g=XD|vV"
        "XE8A`3THA3PIPcFGBXNNa4|A83Mgc7F)}p@XE8A~3RW&^aAju-a4|AA3Ug;MF*gcHH!uowVo5MD3UqKWGB*lza4|AC3Q}+}GC2x!"
        "R%dc)WD0OGGcXEgFbXJVF)|8gF*6D%XE8G{3S(|{ZE$%CW^8X^bTcvva4|D63Mff33QlxzF*7m>XD|vVV{m13VRLkEa&0bSZ)9a-"
        "a|%vmVRCX|c|&hxWn&6(F*7p?XEF*-bZ{{<GzwC1F*7v^NiZ-9bZ{{<HVSlbF*7#`QgAUdI0|!CaA9L>Wn>C)F*7*|XD|vVXE8Dg"
        "XE8GhC}%M<ISONLb!~8Y3Uz62bTKvxa4|G63Mff43UqKWG%*TiFbXJRaAkC1b98TVZ7ySPWMyM>3PW#gaB^jHb7f>sWMOi0VR=Ju"
        "WMyLta4|G83THA3PIPcFG&2fPa4|GA3P~_A3UqKWG&Krza4|GC3Q}+}G&c%!b7wIz3THAk3Ug;NHVS7mFbZ>LGcgKhG%*TuXEZVj"
        "XEibkb7wU(3THMj3Ug;RF$!llH41ZQH#Q1qI5rA%XE-+sXE`?tb7wg?3TH7eI0|!TF)%p_XE8D`3Ug;MGBFBgF)}#{b7wI#FbZce"
        "GdK!!XE8H53TH7iHwtrNE&"
    ),
    2: base64.b85decode(
        "fC6K1WprV4bZ>HPE_H5cb7N>_ZD9&kZfSF4Xk~3-3UL4_fpGzSaRMk<1poj5Uv6P-WpM*o1^@s6M`3bgWo~f<SO)+A0AFTlWo%?~"
        "aRp;zZ)|L3V{~b6ZgUDxa%5$4Wn@HYV{{5}1}Rc;2Pjwq0001KWN`>%aAkC1b98TVZ7y|gX>(&}Wo=;!Rc>i>V`yb<VMb|XY-9>?"
        "2`Fd?V{UbAaCr)8Zge&@3ULZ4V{m13VRLkEa&0bSZ)9a-a|%;qVQgV?LvLhdV+wH#DS>eeeQ^y~3jhEBUvqF_a%*37d2nTM4r6e6"
        "b8umDYc6wfY%X+paAk7}OmA*yRC#b^3ULo9fpHLXVu^Hd5rJ_MSOow80B~$!X>M^7XbC826Ju_5ZE$%CX>N2gG751NDNc!WaTS4a"
        "7FY!U0047sVQg%17ibA6XcuE{b!~8Y3Uz62bT|re7%6BADS>ereQ_FS4r6e6b8umDYc6wfY%X+paAk7}Q)q8;bX0k8WeRZ{DS>eu"
        "b7F{eaUFqi9#{kb004Jya%6EIXbC82A7gHHZE$%Cb98cF3UMGQXbUNUaUp$iB4`d{aCviZVRCCOb8&1gba`-Pa|%;*a%pa7RC#b^"
        "3UMPTfpH{rVu*BcC4q4!SOWk60CHh>aVKaAC}<~RZgp*Nc?x2AbY*j23UMeYXbUNUaVdRqDrgR9By(bjba5+zaV%H`0001Ra%p2_"
        "aV=;GC}=HXWMyM%ZDDK*L}g=XZDDK*aV{xn3n_tdFMV+^Xbxj=d2?`Ka%(PgacnMhd2nTO3PfdNX>DO_RC#b^3UM(hfpIc@aWg1b"
        "2><{9aB^j1X>)0BZgDhA3|IvK0047iVQgh_HA@3n5C8xGXkl|ua%E#_b7^mGNp5CuaW;r`Vsm1Nba6L<aX4560001TX>et6IcNze"
        "XgOnUb!~8Y3Sw_>Y+nj-Iw@!iDS>f2eQ`W!4r6e6b8umDYc6wfY%X+paAk7}LT_(uWnpeqd2nS4aXl%4aXxcmiF9#4fpI`s1ONa4"
        "cW7m9aY1MaC}=@rZgp*Nc?x7<bY*mDZDlqz3UNXyXbUNUaYKD^L}(6UaCviZVRCCOb8&1gba`-Pa|%>xZDn(GVQp|!d2nS4aYZSC"
        "aYl1uh;(sBfpJJ!1^@s6cV%g3XmoK&XbC82Nn>txZE$%CW^8X^bT%{!aY`v@3n_tdOMP)nXbxj=d2?`Ka%(PgacnMhd2nTO3Pf*p"
        "Vr*qpd2nS4aZM?KaZYn$iF9#KfpJh+2LJ#7aA{+7b#i5KQD_M$Xi;bwPEJb$hjCJ4aAkC1b98TVZ7ySPWMyM>3PW#gaB^jHb7f>n"
        "ZDD6+LvLhdV+wIoDS>fReQ{MNSPTFF0AFcsVP|DuV{c?-V{ukk1ONa4E^uyVaaULf0001AadlyAX>@sUSW8fKVu^HdS%Gm{SOow8"
        "0B~q;bZ>E6XbC82TWA<d1WN{naa?FqDS>faeQ{nWXjWJS0000kYH(#|abIXyOGb5Kh;(safpKA21ONa4XL4y|abjo*C}?71Zgp*N"
        "c?xE1Z((#ZG752HO9D=Yab#m~WprV4bZ>HPE@N+GWn*&+PGn(na$$KxZ)9a-3UOsAfpKPuba7{aacEcu0001RVPk7$WN~R|2`Ff3"
        "V{UbAaCr)KX>N2eHVScSO9O>*Yh!R_bYXLJZ*pxeV{c?-V{-~aZ*6dLWpi_7WKLvZa&lpLLvLhdV+wI>DS>fqh;(sofpKqjXb5N$"
        "XcK4_XcuT6Xdh@MXeVeaXf0?sXgO#=XhCR5Xh~>LXi;cdXj^DuXkut+XlZC~bz&|"
    ),
    4: base64.b85decode(
        "fCQC91ONa40001t6L4j8VRLkEa&0bkZfSF4Xk~3-l#B^gZfSF4Xk~3-l#`Sxfs}oeD2xSPZeeX@l#B*PVRB?;Zj_7%UuJ1#Y-Dqk"
        "j0<CLY;0v?bZKvHbCiq=PjX~sa%E&hX=8Mhlawh^lqie>X=IdW0E`Y*ZfSF4Xk~3-MrmbiWR#PXC}<3f1#We1aCwxB1!-<{HZ+uz"
        "lqrl5aAkC1b98TVZ7ySPWMyM>l#B~gV_|Gzazk%qWn+|+lqrFfeUyv~UvqF_a%*37d2nTvj1h2ob8umDYc6wfY%X+paAk9pj0j9`"
        "Zf8_^aAlN}lqrFfb7F~fl!26t1#oO(X>OEg4k&0IXb+49X>N2gGL(~)DNc!Wl!26t1#@j-Y;2Th4k&0NXb+49b!l#NIFyr=DQFZa"
        "fs}oeXcuT0j0sa{Z*p{0d2nTvlawielyhQ;bd-UVj0AUYa%7Zf4k&0XXb+48b98cFl#`SxXcQ@dlzo(F7ibua3R84)X>Mm!d2nTv"
        "lawielyhQ;bd-UVj019Eca&%jC}=lm4~zz4d30rSUzC%SDQFZafs}oeXcuTSb7F{el!26t1#og{V`Y?R4k&0oj0a?8V`*(+Y?O=#"
        "L}g=XZDDMblawiF6e)p}eUxYyXc&wOL}g=XZDDLwd2nTvlawielzo&aj0tdZWn*b`X>V?nOAL$!b7Ns_Wt2+;j1XvHb5L?+V`+0~"
        "Z*EC$W^a^;bz*a3iFA~Kl#B#&X>etfXbvc7O=u5{1!8Y+Y+sa<lqqNwDS?!IlxP=d7>o--Z*Od6VQy4;aAlN}lqrFfb7F~fl!26t"
        "1b1j<Zj@*aC}>w`4~z<AVRU75X>DaTG?bH+DQFZafs}oeXcuT0j15$2ZDn(GVQp|!d2nTvlawielyhQ;bd-UVj0SgQX=iA3lxPkp"
        "Xklm%j0a|HZ((#cG?bH+DQFZafs}oeXcuT0j0!|=bz*E~RC#b^l#`Sxfs}J%iFA~Kl#B;(X=8MCa%Gfg4k&1AXeCZgO9O|LXcCMR"
        "LvL+xa%FRKWn@WhVP|DSZ)9a-l#`Sxfs}oeD2xnWX>DO=WnW`&WMyNNj07%lZfBH?2w!n^VQgu1d6Y{~bz+Hhl!26t1#oC@bZ?Ys"
        "4k&1LXeCPoO9qCNXl^Nilzo&aXmN}ME^2UPXOw7jOGb5Kh;)>Jl#B#ta%p6gXbvc7eP|Di2WD(<VRSPxl#`T80#1gMXcCMJPGn(n"
        "a$$KxZ)9a-l#`Sxfs~1Kl!26t25@0xYh`4VXbvc7hG-9r26bs}bTKxRlaxyXg_LL#j21(0ZE$jBb8}^6PGn(na$$KxZ)9a-l#`Sx"
        "fs}}Jl!26WXbfl_XdY-HXd`GWXf0?qXg6p*Xg+96XiaEVXjf=pXkln-XlrP7Xm)6PXnkmfXohHxbz&|"
    ),
}
INDEXES = {
    4: base64.b85decode(
        "fCQB%0ssI20001elqie`VtHS8Z*pXmj301ibYXLJZ*pxeWpr#Va&LEMa&L8TUukY+Wq4(BbCiq{Q)zBzY-L7iWo%?gZe(S6Wpb30"
        "lqrFfeUvDS3twq&WMz0?ZeeX@lxP8r3}0h!Y;|pJUv6P-Wt5BrcW-iJl#B~sX>Md?cwb~;bYYZ?3uA9=Y-M9~X>V?Gl#B~xWoBV@"
        "Y;<I4V|0|0l#B>sb!lvLX>N0rj01CJbd-~ng_Kg1D2x?ub!~8YE@N+UWiD-XY;<X1a&lpLl#B**V_|Gza+H&lj0J9WZE$&%j0I$L"
        "d2nTvla!1CRWy`|h=-I?lqgFBi~&59PEJls5K9D02y~QULl9yB003nG003bC003?P005MRlv0$BlqgF8kZ2WX7>oi{Gn9#lhm=y3"
        "C`$uq98OM7OAJc{O9*t7VnYmY0001G0001C0001#hLlp2kCZ4&080aqb#-El1!8$$X=IdW1Sx@(eUvC@2WTp22#f-0WRz$MXbor("
        "g_Kg1C}<UE7>ojGIFyNqhm=y3C`$uq98OM7O8@`=|4RS=|Nlz>bd+L42nPTF000000F;K5Qk0LBC`$p5XccHOLkKJZ00000005MR"
        "lv0$BlqgF9kacxpj0tFAb6<09VQg%aXabBAMrmbiWKM5%PIYW-Np56icx7^wlawielzo&aXa{IKXb6l2b8TU4Y?NpUkCZ4&0+4lL"
        "buI"
    ),
    5: base64.b85decode(
        "fCZH&0ssI20001elqie`VtHS8Z*pXmj301ibYXLJZ*pxeWpr#Va&LEMa&L8TUukY+Wq4(BbCiq{Q)zBzY-L7iWo%?gZe(S6Wpb30"
        "lqrFfeUvDS3twq&WMz0?ZeeX@lxP8r3}0h!Y;|pJUv6P-Wt5BrcW-iJl#B~sX>Md?cwb~;bYYZ?3uA9=Y-M9~X>V?Gl#B~xWoBV@"
        "Y;<I4V|0|0l#B>sb!lvLX>N0rj01CJbd-~ng_Kg1D2x?ub!~8YE@N+UWiD-XY;<X1a&lpLl#B**V_|Gza+H&lj0J9WZE$&%j0I$L"
        "d2nTvla!1CRWy`|h=-I?lqgFBi~&59PEJls5K9D02y~QULl9yB003nG003bC003?P005MRlv0$BlqgF8kZ2WX7>oi{Gn9#lhm=y3"
        "C`$uq98OM7OAJc{O9*t7VnYmY0001G0001C0001#hLlp2kCZ4&080aqb#-El1!8$$X=IdW1Sx@(eUvC@2WTp22#f-0WRz$MXbor("
        "g_Kg1C}<UE7>ojGIFyNqhm=y3C`$uq98OM7O8@`=|4RS=|Nlz>bd+L42nPTF000000F;K5Qk0LBC`$p5XccHOLkKJZ00000005MR"
        "lv0$BlqgF9kacxpj0tFAb6<09VQg%aXabBAMrmbiWKM5%PIYW-Np56icx7^wlawielzo&aXa{IKXb6l2b8TU4Y?NpUkCZ4&0+4lL"
        "buI"
    ),
}
