"""Convolution on a sphere with a sparse kernel per circle of latitude; circles are spread over ranks."""
import torch
import torch.distributed as dist


def operation(x: torch.Tensor, lat: torch.Tensor, shift: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    channels, lats, lons = x.shape
    longitude = (torch.arange(lons, device=x.device) + shift.unsqueeze(2)) % lons  # [circles, taps, lons]
    parts = torch.einsum("te,ctem->tcm", value, x[:, lat.unsqueeze(2), longitude]).contiguous()
    own = torch.empty(lats, channels, lons, device=x.device)
    dist.reduce_scatter_tensor(own, parts)
    return own.transpose(0, 1).contiguous()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for lats in (4, 8):
        circles = dist.get_world_size() * lats
        lat = torch.randint(lats, (circles, 8), device="cuda")
        shift = torch.randint(32, (circles, 8), device="cuda")
        operation(torch.randn(4, lats, 32, device="cuda"), lat, shift, torch.randn(circles, 8, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
