"""Gaussians to the cameras that see them, in the order of (source, index); all in integers."""
import torch
import torch.distributed as dist


def operation(camera, points, attrs, seen, seen_attrs, counts) -> None:
    """camera: [3, 4], points: [n, 4], attrs: [n, width], counts: [world]; everything int32."""
    world, rank, n = dist.get_world_size(), dist.get_rank(), points.shape[0]
    cameras = torch.empty(world, 3, 4, dtype=camera.dtype, device=camera.device)
    dist.all_gather_into_tensor(cameras, camera)
    place = torch.cat([points[:, :3], torch.full_like(points[:, :1], 64)], dim=1)
    u, v, d = (cameras.unsqueeze(1) * place.view(1, n, 1, 4)).sum(dim=3).int().unbind(dim=2)
    goes = (d > 0) & (u.abs() <= d) & (v.abs() <= d)  # [world, n]
    camera_of, index = goes.nonzero(as_tuple=True)
    span = (2 * d + 1).abs()
    x, y = (u + d) * 64 // span, (v + d) * 64 // span
    ids = (rank * n + torch.arange(n, device=points.device)).int().expand(world, n)
    rows = torch.stack([x, y, d, ids], dim=2)[camera_of, index]
    sent = goes.sum(dim=1).int()
    dist.all_to_all_single(counts, sent)
    sent, came = sent.tolist(), counts.tolist()
    dist.all_to_all_single(seen[: sum(came)], rows, came, sent)
    dist.all_to_all_single(seen_attrs[: sum(came)], attrs[index], came, sent)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for n, quads in ((256, 2), (1024, 4)):
        camera = torch.randint(-20, 21, (3, 4), dtype=torch.int32, device="cuda")
        points = torch.randint(-500, 501, (n, 4), dtype=torch.int32, device="cuda")
        attrs = torch.randint(-(2**31), 2**31, (n, 4 * quads), dtype=torch.int32, device="cuda")
        seen = torch.empty(world * n, 4, dtype=torch.int32, device="cuda")
        seen_attrs = torch.empty(world * n, 4 * quads, dtype=torch.int32, device="cuda")
        counts = torch.empty(world, dtype=torch.int32, device="cuda")
        operation(camera, points, attrs, seen, seen_attrs, counts)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
